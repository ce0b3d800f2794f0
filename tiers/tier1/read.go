package tier1

import (
	"context"

	"likectl/pkg/cursor"
	"likectl/pkg/likes"
	"likectl/pkg/store"
)

// Reads go to the database that commits, so they include every operation that
// was answered before they began. That is more than any version token asks for:
// the tokens in seen need no look.

// Counts implements [likes.Service].
func (s *Service) Counts(ctx context.Context, c likes.Counter, items []likes.Item, _ []likes.Version) []likes.Count {
	out := make([]likes.Count, len(items))
	rows := make([]store.CountRow, len(items))
	err := likes.CheckCounts(c, items)
	// The snapshot is taken after this instant, so "the count was this as of
	// then or later" is true.
	asOf := s.clock.Time()
	if err == nil {
		err = s.store.Counts(ctx, c, items, rows)
	}
	for i := range out {
		if err != nil {
			out[i] = likes.Count{Err: err}
			continue
		}
		out[i] = likes.Count{N: rows[i].N, Version: rows[i].Version, AsOf: asOf, Source: likes.FromStore}
	}
	return out
}

// Has implements [likes.Service].
func (s *Service) Has(ctx context.Context, c likes.Counter, user likes.UserID, items []likes.Item, _ []likes.Version) []likes.Membership {
	out := make([]likes.Membership, len(items))
	rows := make([]likes.Register, len(items))
	err := likes.CheckHas(c, user, items)
	if err == nil {
		err = s.store.Registers(ctx, c, user, items, rows)
	}
	for i, r := range rows {
		switch {
		case err != nil:
			out[i].Err = err
		case r.Liked:
			out[i] = likes.Membership{Liked: true, Clock: r.Clock, LikedAt: r.LikedAt}
		default:
			out[i] = likes.Membership{Clock: r.Clock}
		}
	}
	return out
}

// Likers implements [likes.Service].
func (s *Service) Likers(ctx context.Context, c likes.Counter, item likes.Item, cur likes.Cursor, limit int) ([]likes.Member, likes.Cursor, error) {
	if err := likes.CheckPage(c, limit); err != nil {
		return nil, "", err
	}
	if err := item.Validate(); err != nil {
		return nil, "", err
	}
	after, err := cursor.ParseLikers(cur, c, item)
	if err != nil {
		return nil, "", err
	}
	page, err := s.store.Likers(ctx, c, item, after, limit)
	if err != nil || len(page) < limit {
		return page, "", err
	}
	return page, cursor.Likers(c, item, page[len(page)-1].Edge.User), nil
}

// LikedBy implements [likes.Service].
func (s *Service) LikedBy(ctx context.Context, c likes.Counter, user likes.UserID, cur likes.Cursor, limit int) ([]likes.Member, likes.Cursor, error) {
	if err := likes.CheckPage(c, limit); err != nil {
		return nil, "", err
	}
	if err := likes.CheckUser(user); err != nil {
		return nil, "", err
	}
	after, err := cursor.ParseLikedBy(cur, c, user)
	if err != nil {
		return nil, "", err
	}
	page, err := s.store.LikedBy(ctx, c, user, after, limit)
	if err != nil || len(page) < limit {
		return page, "", err
	}
	return page, cursor.LikedBy(c, user, page[len(page)-1].Edge.Item), nil
}
