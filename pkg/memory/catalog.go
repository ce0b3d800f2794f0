package memory

import (
	"context"
	"maps"

	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/visibility"
)

// catalog is what is known about items and users besides edges, under the
// service's mutex.
type catalog struct {
	items   map[likes.Item]visibility.Item
	blocks  map[store.Block]struct{}
	follows map[store.Follow]struct{}
}

var _ store.Catalog = (*Service)(nil)

func newCatalog() catalog {
	return catalog{
		items:   make(map[likes.Item]visibility.Item),
		blocks:  make(map[store.Block]struct{}),
		follows: make(map[store.Follow]struct{}),
	}
}

// PutItem implements [store.Catalog].
func (s *Service) PutItem(_ context.Context, c store.ItemChange) (visibility.Item, bool, error) {
	if err := c.Validate(); err != nil {
		return visibility.Item{}, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.anyErased(c.Names()); err != nil {
		return visibility.Item{}, false, err
	}
	was := s.catalog.items[c.Item]
	now := c.Over(was)
	s.catalog.items[c.Item] = now
	return now, now != was, nil
}

// PutBlock implements [store.Catalog].
func (s *Service) PutBlock(_ context.Context, b store.Block, on bool) (bool, error) {
	if err := b.Validate(); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.anyErased(store.Named(on, b.Names())); err != nil {
		return false, err
	}
	return put(s.catalog.blocks, b, on), nil
}

// PutFollow implements [store.Catalog].
func (s *Service) PutFollow(_ context.Context, f store.Follow, on bool) (bool, error) {
	if err := f.Validate(); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.anyErased(store.Named(on, f.Names())); err != nil {
		return false, err
	}
	return put(s.catalog.follows, f, on), nil
}

// put adds or removes a member of a set and says whether it changed.
func put[K comparable](set map[K]struct{}, k K, on bool) bool {
	_, was := set[k]
	if on {
		set[k] = struct{}{}
	} else {
		delete(set, k)
	}
	return was != on
}

// Facts implements [store.Catalog].
func (s *Service) Facts(_ context.Context, viewer likes.UserID, items []likes.Item, out []visibility.Facts) error {
	if err := store.CheckFacts(viewer, items); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, item := range items {
		row, known := s.catalog.items[item]
		_, follows := s.catalog.follows[store.Follow{Follower: viewer, Followee: row.Owner}]
		_, blocked := s.catalog.blocks[store.Block{Item: item, Blocked: viewer}]
		out[i] = visibility.Facts{
			Known: known, Owner: row.Owner, Level: row.Level, State: row.State, HideCounts: row.HideCounts,
			Follows: follows,
			Blocked: blocked || s.catalog.between(viewer, row.Owner),
		}
	}
	return nil
}

// between says whether one of two users blocks the other. No block names user 0.
func (c *catalog) between(a, b likes.UserID) bool {
	_, ab := c.blocks[store.Block{Blocker: a, Blocked: b}]
	_, ba := c.blocks[store.Block{Blocker: b, Blocked: a}]
	return ab || ba
}

// Restricts implements [store.Catalog].
func (s *Service) Restricts(context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for b := range s.catalog.blocks {
		if b.Blocker == 0 {
			return true, nil
		}
	}
	return len(s.catalog.items) > 0, nil
}

// Blocked implements [store.Catalog].
func (s *Service) Blocked(_ context.Context, viewer likes.UserID, users []likes.UserID, out []bool) error {
	if err := store.CheckBlocked(viewer, users); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, user := range users {
		out[i] = s.catalog.between(viewer, user)
	}
	return nil
}

// Totals implements [store.Catalog].
func (s *Service) Totals(_ context.Context, user likes.UserID) (store.Totals, error) {
	if err := likes.CheckUser(user); err != nil {
		return store.Totals{}, err
	}
	t := store.NewTotals()
	s.mu.Lock()
	defer s.mu.Unlock()
	for e, r := range s.edges {
		if row, known := s.catalog.items[e.Item]; e.User == user && r.Liked && (!known || row.State == visibility.Live) {
			t.Given[e.Counter]++
		}
	}
	for key, c := range s.counts {
		switch row := s.catalog.items[key.Item]; {
		case row.Owner != user || row.State != visibility.Live || c.N == 0:
		case row.HideCounts:
			t.ReceivedHidden[key.Counter] += c.N
		default:
			t.Received[key.Counter] += c.N
		}
	}
	return t, nil
}

// give hands all relations of a user to another one, or to nobody if that is 0, and
// returns how many there were. What would relate that user to itself is dropped.
func (c *catalog) give(user, to likes.UserID) (n int64) {
	for item, row := range c.items {
		if row.Owner == user {
			row.Owner = to
			c.items[item] = row
			n++
		}
	}
	other := func(u likes.UserID) likes.UserID {
		if u == user {
			return to
		}
		return u
	}
	for b := range c.blocks {
		if b.Blocker != user && b.Blocked != user {
			continue
		}
		delete(c.blocks, b)
		n++
		if b.Blocker, b.Blocked = other(b.Blocker), other(b.Blocked); to != 0 && b.Blocker != b.Blocked {
			c.blocks[b] = struct{}{}
		}
	}
	for f := range c.follows {
		if f.Follower != user && f.Followee != user {
			continue
		}
		delete(c.follows, f)
		n++
		if f.Follower, f.Followee = other(f.Follower), other(f.Followee); to != 0 && f.Follower != f.Followee {
			c.follows[f] = struct{}{}
		}
	}
	return n
}

func (c *catalog) clone() *catalog {
	return &catalog{items: maps.Clone(c.items), blocks: maps.Clone(c.blocks), follows: maps.Clone(c.follows)}
}
