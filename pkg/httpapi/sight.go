package httpapi

import (
	"context"
	"slices"

	"likectl/pkg/abuse"
	"likectl/pkg/auth"
	"likectl/pkg/likes"
	"likectl/pkg/visibility"
)

// viewer returns through whose eyes a call sees: the token's user, the one that a
// service names, or nobody's.
func (c *call) viewer(named likes.UserID) (likes.UserID, error) {
	user, err := c.causer(named)
	if user == 0 && c.caller.Scope >= auth.Service {
		return visibility.Backend, err
	}
	return user, err
}

// see returns what the viewer gets of an item. One that is not for the viewer is
// ErrNotFound and nothing else, whyever it is not: whoever could tell an item that
// is private from one that there is not would know that it is there.
func (c *call) see(ctx context.Context, viewer likes.UserID, item likes.Item) (visibility.Decision, error) {
	d, err := c.api.cfg.Guard.One(ctx, viewer, item)
	if err == nil && !d.Visible {
		err = likes.ErrNotFound
	}
	return d, err
}

// apply applies the mutations that their own users may do, unless the guard against
// abuse refuses them; the results of the others are ErrNotFound. Who may not see an
// item does not get as far as that guard: its answer would tell that it is there.
func (a *API) apply(ctx context.Context, c *call, ms []likes.Mutation, d abuse.Device) ([]likes.Result, visibility.Decisions, error) {
	if a.cfg.Guard.Open() {
		return a.applyBatch(ctx, c, ms, d), nil, nil
	}
	users, items := make([]likes.UserID, len(ms)), make([]likes.Item, len(ms))
	for i, m := range ms {
		users[i], items[i] = m.Edge.User, m.Edge.Item
	}
	look, err := a.cfg.Guard.LookEach(ctx, users, items)
	if err != nil {
		return nil, nil, err
	}
	some, at := those(look, ms, visible)
	var results []likes.Result
	if len(some) > 0 {
		results = a.applyBatch(ctx, c, some, d)
	}
	return spread(len(ms), at, results, likes.Result{Err: likes.ErrNotFound}), look, nil
}

func visible(d visibility.Decision) bool     { return d.Visible }
func countsShown(d visibility.Decision) bool { return d.CountsShown }

// those returns the entries whose decision is as wanted, and their positions; all
// of them and nil if nothing is restricted.
func those[T any](look visibility.Decisions, all []T, want func(visibility.Decision) bool) (some []T, at []int) {
	if look == nil {
		return all, nil
	}
	at = make([]int, 0, len(all))
	for i := range all {
		if want(look[i]) {
			some, at = append(some, all[i]), append(at, i)
		}
	}
	return some, at
}

// spread puts answers back to the positions of what was asked, among n. What was
// not asked gets none.
func spread[T any](n int, at []int, got []T, none T) []T {
	if at == nil {
		return got
	}
	all := slices.Repeat([]T{none}, n)
	for j, i := range at {
		all[i] = got[j]
	}
	return all
}

// unblocked leaves out of a page the users between whom and the viewer there is a
// block.
func (a *API) unblocked(ctx context.Context, viewer likes.UserID, page []likes.Member) ([]likes.Member, error) {
	if a.cfg.Catalog == nil || viewer <= 0 || len(page) == 0 {
		return page, nil
	}
	users, blocked := make([]likes.UserID, len(page)), make([]bool, len(page))
	for i, m := range page {
		users[i] = m.Edge.User
	}
	if err := a.cfg.Catalog.Blocked(ctx, viewer, users, blocked); err != nil {
		return nil, likes.Errorf(likes.ErrUnavailable, "blocks: %w", err)
	}
	kept := page[:0]
	for i, m := range page {
		if !blocked[i] {
			kept = append(kept, m)
		}
	}
	return kept, nil
}

// seen leaves out of a page the items that the viewer may not see.
func (a *API) seen(ctx context.Context, viewer likes.UserID, page []likes.Member) ([]likes.Member, error) {
	if len(page) == 0 || a.cfg.Guard.Open() {
		return page, nil
	}
	items := make([]likes.Item, len(page))
	for i, m := range page {
		items[i] = m.Edge.Item
	}
	look, err := a.cfg.Guard.Look(ctx, viewer, items)
	if err != nil {
		return nil, err
	}
	kept, _ := those(look, page, visible)
	return kept, nil
}
