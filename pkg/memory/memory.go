// Package memory keeps edges and events in maps under one mutex: the plainest
// [likes.Service] there can be, and so the oracle that the suites compare every
// tier with. It is not for serving: all is lost with the process, and listings
// sort on every page.
package memory

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"likectl/pkg/cursor"
	"likectl/pkg/likes"
)

// epoch is the one history that a Service has.
const epoch likes.Epoch = 1

// Service holds registers and the counts derived from them.
type Service struct {
	mu     sync.Mutex
	edges  map[likes.Edge]likes.Register
	events map[event]struct{}
	counts map[likes.Edge]likes.Count // by counter and item; the user is 0
	erased map[likes.UserID]*erasure
}

// event is what an Add is counted by.
type event struct {
	counter likes.Counter
	item    likes.Item
	id      likes.EventID
}

var _ likes.Service = (*Service)(nil)

// New returns an empty service.
func New() *Service {
	return &Service{
		edges:  make(map[likes.Edge]likes.Register),
		events: make(map[event]struct{}),
		counts: make(map[likes.Edge]likes.Count),
		erased: make(map[likes.UserID]*erasure),
	}
}

// Apply implements [likes.Service].
func (s *Service) Apply(_ context.Context, ms []likes.Mutation) []likes.Result {
	out := make([]likes.Result, len(ms))
	err := likes.CheckApply(len(ms))
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, m := range ms {
		if err := cmp.Or(err, m.Validate()); err != nil {
			out[i].Err = err
			continue
		}
		if m.Op == likes.Add {
			out[i] = s.add(m)
		} else {
			out[i] = s.apply(m)
		}
	}
	return out
}

// add does one valid Add under the lock. No event is ever forgotten.
func (s *Service) add(m likes.Mutation) likes.Result {
	r := likes.Result{Outcome: likes.Unchanged, Version: likes.Version{Edge: m.Edge, Epoch: epoch}}
	key, of := likes.Edge{Counter: m.Edge.Counter, Item: m.Edge.Item}, event{m.Edge.Counter, m.Edge.Item, m.Event}
	if _, ok := s.events[of]; !ok {
		s.events[of] = struct{}{}
		s.step(key, 1)
		r.Outcome = likes.Changed
	}
	if m.Fixed == 0 {
		r.Count = s.count(key)
	}
	return r
}

// step moves a count.
func (s *Service) step(key likes.Edge, by int64) {
	c := s.counts[key]
	c.N += by
	c.Version = likes.CountVersion{Epoch: epoch, N: c.Version.N + 1}
	s.counts[key] = c
}

// apply does one valid mutation of an edge under the lock.
func (s *Service) apply(m likes.Mutation) likes.Result {
	switch _, erased := s.erased[m.Edge.User]; {
	case erased && m.Fixed == 0:
		return likes.Result{Err: likes.ErasedError(m.Edge.User)}
	case erased:
		return likes.Result{Outcome: likes.Superseded, Version: likes.Version{Edge: m.Edge, Clock: m.Fixed}}
	}
	was, liked, fresh := s.edges[m.Edge], m.Op == likes.Set, true
	var now likes.Register
	if m.Fixed == 0 {
		clock := max(likes.ClockAt(time.Now(), 0), m.After.Next())
		now, _ = was.Issue(liked, clock, begun(m, clock))
	} else {
		now, fresh = was.Replay(liked, m.Fixed, begun(m, m.Fixed))
	}
	s.edges[m.Edge] = now
	key := likes.Edge{Counter: m.Edge.Counter, Item: m.Edge.Item}
	switch {
	case now.Liked && !was.Liked:
		s.step(key, 1)
	case was.Liked && !now.Liked:
		s.step(key, -1)
	}
	r := likes.Result{Outcome: likes.Unchanged, Version: likes.Version{Edge: m.Edge, Epoch: epoch, Clock: now.Clock}}
	switch {
	case !fresh:
		r.Outcome = likes.Superseded
	case now.Liked != was.Liked:
		r.Outcome = likes.Changed
	}
	if m.Fixed == 0 {
		r.Count = s.count(key)
	}
	return r
}

// Counts implements [likes.Service].
func (s *Service) Counts(_ context.Context, c likes.Counter, items []likes.Item, seen []likes.Version) []likes.Count {
	out := make([]likes.Count, len(items))
	err := likes.CheckCounts(c, items)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, item := range items {
		if err := cmp.Or(err, s.reached(c, item, seen)); err != nil {
			out[i].Err = err
			continue
		}
		out[i] = s.count(likes.Edge{Counter: c, Item: item})
	}
	return out
}

func (s *Service) count(key likes.Edge) likes.Count {
	c := s.counts[key]
	c.AsOf, c.Source = time.Now(), likes.FromStore
	return c
}

// Has implements [likes.Service].
func (s *Service) Has(_ context.Context, c likes.Counter, user likes.UserID, items []likes.Item, seen []likes.Version) []likes.Membership {
	out := make([]likes.Membership, len(items))
	err := likes.CheckHas(c, user, items)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, item := range items {
		if err := cmp.Or(err, s.reached(c, item, seen)); err != nil {
			out[i].Err = err
			continue
		}
		r := s.edges[likes.Edge{Counter: c, Item: item, User: user}]
		out[i] = likes.Membership{Liked: r.Liked, Clock: r.Clock}
		if r.Liked {
			out[i].LikedAt = r.LikedAt
		}
	}
	return out
}

// reached returns ErrNotYet if a version names a state of the item that is not
// here, which takes a token of another history.
func (s *Service) reached(c likes.Counter, item likes.Item, seen []likes.Version) error {
	for _, v := range seen {
		if v.Edge.Counter == c && v.Edge.Item == item && s.edges[v.Edge].Clock < v.Clock {
			return likes.Errorf(likes.ErrNotYet, "%v has not reached clock %v", v.Edge, v.Clock)
		}
	}
	return nil
}

// Likers implements [likes.Service].
func (s *Service) Likers(_ context.Context, c likes.Counter, item likes.Item, cur likes.Cursor, limit int) ([]likes.Member, likes.Cursor, error) {
	after, err := cursor.ParseLikers(cur, c, item)
	if err := cmp.Or(likes.CheckPage(c, limit), item.Validate(), err); err != nil {
		return nil, "", err
	}
	page, more := s.page(limit,
		func(e likes.Edge) bool { return e.Counter == c && e.Item == item && e.User > after },
		func(a, b likes.Edge) int { return cmp.Compare(a.User, b.User) })
	if !more {
		return page, "", nil
	}
	return page, cursor.Likers(c, item, page[limit-1].Edge.User), nil
}

// LikedBy implements [likes.Service].
func (s *Service) LikedBy(_ context.Context, c likes.Counter, user likes.UserID, cur likes.Cursor, limit int) ([]likes.Member, likes.Cursor, error) {
	after, err := cursor.ParseLikedBy(cur, c, user)
	if err := cmp.Or(likes.CheckPage(c, limit), likes.CheckUser(user), err); err != nil {
		return nil, "", err
	}
	byItem := func(a, b likes.Item) int { return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(b.ID, a.ID)) }
	page, more := s.page(limit,
		func(e likes.Edge) bool {
			return e.Counter == c && e.User == user && (cur == "" || byItem(e.Item, after) > 0)
		},
		func(a, b likes.Edge) int { return byItem(a.Item, b.Item) })
	if !more {
		return page, "", nil
	}
	return page, cursor.LikedBy(c, user, page[limit-1].Edge.Item), nil
}

// page returns the first liked edges of a listing and whether more follow.
func (s *Service) page(limit int, in func(likes.Edge) bool, order func(a, b likes.Edge) int) ([]likes.Member, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []likes.Member
	for e, r := range s.edges {
		if r.Liked && in(e) {
			all = append(all, likes.Member{Edge: e, LikedAt: r.LikedAt})
		}
	}
	slices.SortFunc(all, func(a, b likes.Member) int { return order(a.Edge, b.Edge) })
	return all[:min(limit, len(all))], len(all) > limit
}

// Contract implements [likes.Service].
func (s *Service) Contract() likes.Contract {
	return likes.Contract{
		Name: "a map and a mutex", Ack: likes.AckMemory,
		ReadYourWrites: true, ExactChanged: true, CountEqualsEdges: true,
		Losses: []likes.Loss{{Backend: "the process", Lost: "every edge and count"}},
	}
}

// begun is when the mutation's like began.
func begun(m likes.Mutation, clock likes.Clock) time.Time {
	if m.LikedAt.IsZero() {
		return clock.Time()
	}
	return m.LikedAt
}
