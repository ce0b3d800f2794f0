package tiertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

// Concurrent lets clients contend for few edges through all instances and judges
// their recorded history.
func Concurrent(t *testing.T, h Harness) {
	c := h.Open(t, instances)
	seed, ops := Seed(), scale("LIKECTL_OPS", 4000)
	require.NoError(t, concurrent(newEnv(t, c), seed, ops), "LIKECTL_SEED=%d LIKECTL_OPS=%d (the order of calls is the scheduler's)", seed, ops)
}

func concurrent(e *env, seed uint64, ops int) error {
	const clients, users, items, readers = 16, 10, 3, 2
	h := NewHistory()
	us := e.users(users)
	all := make([]likes.Item, items)
	for i := range all {
		all[i] = e.item()
	}
	errs := make(chan error, clients)
	for client := range clients {
		rng := rand.New(rand.NewPCG(seed, uint64(client)))
		r := recorder{h: h, client: client, all: all}
		go func() {
			for range ops / clients {
				s := e.Services[rng.IntN(len(e.Services))]
				g := likes.Edge{Counter: likes.Likes, Item: all[rng.IntN(items)], User: us[rng.IntN(users)]}
				var err error
				switch k := rng.IntN(10); {
				case client < readers || k < 2:
					err = r.counts(e.Context(), s)
				case k < 4:
					err = r.has(e.Context(), s, g)
				default:
					err = r.write(e.Context(), s, g, k%2 == 0, time.Duration(rng.IntN(20))*time.Millisecond)
				}
				if err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	var failed []error
	for range clients {
		failed = append(failed, <-errs)
	}
	e.settle()
	for _, s := range e.Services { // the end is part of the history
		r := recorder{h: h, client: clients, all: all}
		failed = append(failed, r.counts(e.Context(), s))
		for _, u := range us {
			for _, item := range all {
				failed = append(failed, r.has(e.Context(), s, likes.Edge{Counter: likes.Likes, Item: item, User: u}))
			}
		}
	}
	return errors.Join(errors.Join(failed...), Judge(h.Events(), e.contract))
}

// Judge runs all checks of histories, as strict as the contract, and keeps a
// history that fails.
func Judge(events []Event, c likes.Contract) error {
	err := errors.Join(
		CheckEdges(events, c.EdgeStaleness),
		CheckCounts(events, c.CountStaleness),
		CheckVersions(events, c.CountStaleness),
	)
	if err == nil {
		return nil
	}
	name, werr := WriteFile(events)
	return errors.Join(err, fmt.Errorf("the history of %d events is in %s", len(events), name), werr)
}

// recorder calls services for one client and records the calls.
type recorder struct {
	h      *History
	client int
	all    []likes.Item
}

// write likes or unlikes. A short patience makes some writes uncertain, 0 none.
func (r recorder) write(ctx context.Context, s likes.Service, g likes.Edge, like bool, wait time.Duration) error {
	m, kind := clr(g), KindUnlike
	if like {
		m, kind = set(g), KindLike
	}
	if wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	call := r.h.Begin()
	exact := s.Contract().ExactChanged
	res := apply1(ctx, s, m)
	e := Event{Client: r.client, Kind: kind, Edge: g, Call: call, Exact: exact, Changed: res.Outcome == likes.Changed}
	switch {
	case res.Err == nil:
		count := Event{
			Client: r.client, Kind: KindCount, Call: call, N: res.Count.N, Version: res.Count.Version, Beside: true,
			Edge: likes.Edge{Counter: g.Counter, Item: g.Item},
		}
		r.h.End(&e, &count)
		return nil
	case errors.Is(res.Err, likes.ErrUncertain):
		e.Uncertain, e.Exact = true, false
		r.h.End(&e)
		return nil
	case errors.Is(res.Err, likes.ErrUnavailable), errors.Is(res.Err, likes.ErrOverloaded):
		r.h.End()
		return nil
	default:
		r.h.End()
		return fmt.Errorf("%v of %v: %w", m.Op, g, res.Err)
	}
}

func (r recorder) has(ctx context.Context, s likes.Service, g likes.Edge) error {
	call := r.h.Begin()
	m := s.Has(ctx, g.Counter, g.User, []likes.Item{g.Item}, nil)[0]
	if m.Err != nil {
		r.h.End()
		return fmt.Errorf("has %v: %w", g, m.Err)
	}
	r.h.End(&Event{Client: r.client, Kind: KindHas, Edge: g, Call: call, Liked: m.Liked})
	return nil
}

func (r recorder) counts(ctx context.Context, s likes.Service) error {
	call := r.h.Begin()
	cs := s.Counts(ctx, likes.Likes, r.all, nil)
	var events []*Event
	for i, c := range cs {
		if c.Err != nil {
			r.h.End()
			return fmt.Errorf("count of item %d: %w", r.all[i].ID, c.Err)
		}
		events = append(events, &Event{
			Client: r.client, Kind: KindCount, Call: call, N: c.N, Version: c.Version,
			Edge: likes.Edge{Counter: likes.Likes, Item: r.all[i]},
		})
	}
	r.h.End(events...)
	return nil
}
