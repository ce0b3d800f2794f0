package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/userhash"
)

// erasure is a record with what stores forget when it is finished.
type erasure struct {
	store.Erasure
	user, into likes.UserID
}

var _ store.People = (*Service)(nil)

// HashUser implements [store.People] under a key of zeros: nothing here outlives
// the process.
func (s *Service) HashUser(user likes.UserID) store.UserHash { return userhash.Key{}.Hash(user) }

// BeginErase implements [store.People].
func (s *Service) BeginErase(_ context.Context, users []likes.UserID, into likes.UserID) error {
	if err := store.CheckErase(users, into); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, gone := s.erased[into]; gone {
		return store.ErrGone(into)
	}
	for _, user := range users {
		if e, there := s.erased[user]; there {
			if err := store.CheckBegun(user, e.Erasure, e.into, into); err != nil {
				return err
			}
		} else if s.receives(user) {
			return store.ErrReceives(user)
		}
	}
	for _, user := range users {
		if _, there := s.erased[user]; !there {
			e := store.Erasure{User: s.HashUser(user), Begun: now(), Merged: into != 0}
			s.erased[user] = &erasure{Erasure: e, user: user, into: into}
		}
	}
	return nil
}

// receives says whether somebody is being merged into the user.
func (s *Service) receives(user likes.UserID) bool {
	for _, e := range s.erased {
		if e.into == user {
			return true
		}
	}
	return false
}

// StepErase implements [store.People]. There are no relations here.
func (s *Service) StepErase(_ context.Context, user likes.UserID, limit int) (store.Erasure, error) {
	if err := store.CheckStep(limit); err != nil {
		return store.Erasure{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e, begun := s.erased[user]
	switch {
	case !begun:
		return store.Erasure{}, store.ErrNotBegun(user)
	case !e.Finished.IsZero():
		return e.Erasure, nil
	}
	of := s.edgesOf(user)
	for _, g := range of[:min(limit, len(of))] {
		r := s.edges[g]
		if r.Liked {
			e.Edges++
		} else {
			e.Tombstones++
		}
		delete(s.edges, g)
		key, was := likes.Edge{Counter: g.Counter, Item: g.Item}, int64(0)
		if e.into != 0 {
			g.User = e.into
			was = number01(s.edges[g].Liked)
			s.edges[g] = s.edges[g].Union(r)
		}
		if by := number01(s.edges[g].Liked) - was - number01(r.Liked); by != 0 {
			s.step(key, by)
		}
	}
	if len(of) < limit {
		e.Finished, e.into = now(), 0
	}
	return e.Erasure, nil
}

// edgesOf returns the user's edges in key order.
func (s *Service) edgesOf(user likes.UserID) (of []likes.Edge) {
	for g := range s.edges {
		if g.User == user {
			of = append(of, g)
		}
	}
	slices.SortFunc(of, likes.Edge.Compare)
	return of
}

// Erasure implements [store.People].
func (s *Service) Erasure(_ context.Context, user likes.UserID) (store.Erasure, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, there := s.erased[user]; there {
		return e.Erasure, true, nil
	}
	return store.Erasure{}, false, nil
}

// Unfinished implements [store.People].
func (s *Service) Unfinished(_ context.Context, limit int) ([]likes.UserID, error) {
	if err := store.CheckStep(limit); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*erasure
	for _, e := range s.erased {
		if e.Finished.IsZero() {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b *erasure) int { return cmp.Or(a.Begun.Compare(b.Begun), cmp.Compare(a.user, b.user)) })
	var users []likes.UserID
	for _, e := range all[:min(limit, len(all))] {
		users = append(users, e.user)
	}
	return users, nil
}

// Remains implements [store.People].
func (s *Service) Remains(_ context.Context, user likes.UserID) (rest store.Remains, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.edgesOf(user) {
		if s.edges[g].Liked {
			rest.Edges++
		} else {
			rest.Tombstones++
		}
	}
	return rest, nil
}

// now is the time as precise as stores keep it.
func now() time.Time { return time.Now().Truncate(time.Microsecond).UTC() }

func number01(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
