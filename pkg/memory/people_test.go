package memory_test

import (
	"context"
	"errors"
	"testing"

	"likectl/pkg/likes"
	"likectl/pkg/memory"
	"likectl/pkg/store"
	"likectl/pkg/store/storetest"
)

// TestPeople holds the oracle to the suite of the stores.
func TestPeople(t *testing.T) {
	storetest.RunPeople(t, func(testing.TB) []storetest.PeopleStore {
		return []storetest.PeopleStore{edges{memory.New()}}
	})
}

// edges is the service as a store whose batches are not transactions. The clocks
// of issued writes are the service's.
type edges struct{ *memory.Service }

func (e edges) Commit(ctx context.Context, c store.Commit, out []store.Written) error {
	for i, w := range c.Writes {
		m := likes.Mutation{Op: likes.Clear, Edge: w.Edge, LikedAt: w.LikedAt}
		if w.Liked {
			m.Op = likes.Set
		}
		if c.Replay {
			m.Fixed = min(w.Clock, likes.MaxClock)
		}
		r := e.Apply(ctx, []likes.Mutation{m})[0]
		_, gone, err := e.Erasure(ctx, w.Edge.User)
		if err != nil {
			return err
		}
		switch {
		case errors.Is(r.Err, likes.ErrErased), gone && r.Outcome == likes.Superseded:
			out[i] = store.Written{Erased: true}
		case r.Err != nil:
			return r.Err
		case r.Outcome == likes.Superseded:
			out[i] = store.Written{}
		default:
			out[i] = store.Written{Applied: true, Was: w.Liked != (r.Outcome == likes.Changed), Clock: r.Version.Clock}
		}
	}
	for i, w := range c.Writes {
		if !c.Replay && out[i].Applied {
			n := e.Service.Counts(ctx, w.Edge.Counter, []likes.Item{w.Edge.Item}, nil)[0]
			out[i].Count, out[i].Version = n.N, n.Version
		}
	}
	return nil
}

func (e edges) Counts(ctx context.Context, c likes.Counter, items []likes.Item, out []store.CountRow) error {
	for i, item := range items {
		n := e.Service.Counts(ctx, c, []likes.Item{item}, nil)[0]
		if n.Err != nil {
			return n.Err
		}
		out[i] = store.CountRow{N: n.N, Version: n.Version}
	}
	return nil
}

func (e edges) Registers(ctx context.Context, c likes.Counter, user likes.UserID, items []likes.Item, out []likes.Register) error {
	for i, m := range e.Has(ctx, c, user, items, nil) {
		if m.Err != nil {
			return m.Err
		}
		out[i] = likes.Register{Liked: m.Liked, Clock: m.Clock, LikedAt: m.LikedAt}
	}
	return nil
}
