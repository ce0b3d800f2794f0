package tiertest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

// faultWait bounds calls to a backend that is away: longer than a tier needs to
// say so, shorter than a test's patience.
const faultWait = 8 * time.Second

func faultChecks() []check {
	needs := func(e *env) bool { return len(e.Faults) > 0 }
	return []check{
		{name: "a store that is away is an error for each entry, never 0 and never no", run: checkFaultReads, needs: needs},
		{name: "ErrUnavailable: nothing was applied, ErrUncertain: it may have been", run: checkFaultWrites, needs: needs},
		{name: "malformed arguments are refused before any store is asked", run: checkFaultInvalid, needs: needs},
	}
}

// under runs the body while a fault is in force and returns when the backend
// answers again and all instances have noticed.
func (e *env) under(f Fault, body func()) {
	e.Helper()
	end, err := f.Start(e.Context())
	require.NoError(e, err, f.Name)
	ended := false
	defer func() { // also when the body fails: the next check needs the backend
		if !ended {
			_ = end(context.WithoutCancel(e.Context()))
		}
	}()
	body()
	ended = true
	require.NoError(e, end(e.Context()), f.Name)
	ctx, cancel := context.WithTimeout(e.Context(), patience)
	defer cancel()
	for _, s := range e.Services {
		g := e.edge()
		for {
			r := apply1(ctx, s, set(g))
			if r.Err == nil {
				break
			}
			require.NoError(e, ctx.Err(), "%s has ended, writes have not come back: %v", f.Name, r.Err)
		}
	}
	e.settle()
}

func checkFaultReads(e *env) {
	for _, f := range e.Faults {
		g := e.edge()
		e.like(g)
		e.settle()
		e.under(f, func() {
			asked := []likes.Item{g.Item, e.item(), g.Item}
			ctx, cancel := context.WithTimeout(e.Context(), faultWait)
			defer cancel()
			for _, s := range e.Services {
				for i, c := range s.Counts(ctx, likes.Likes, asked, nil) {
					if c.Err == nil && c.Source != likes.FromStale {
						require.Equal(e, i != 1, c.N == 1, "%s: a count without an error is the truth", f.Name)
					}
				}
				for i, m := range s.Has(ctx, likes.Likes, g.User, asked, nil) {
					if m.Err == nil {
						require.Equal(e, i != 1, m.Liked, "%s: a membership without an error is the truth", f.Name)
					}
				}
				if users, err := walkLikers(ctx, s, g.Item, 10); err == nil {
					require.Equal(e, []likes.UserID{g.User}, users, f.Name)
				}
			}
		})
		require.Equal(e, int64(1), e.count(g.Item).N)
	}
}

func checkFaultWrites(e *env) {
	const writes = 40
	for _, f := range e.Faults {
		item := e.item()
		gs := edges(item, e.users(writes)...)
		rs := make([]likes.Result, writes)
		e.under(f, func() {
			ctx, cancel := context.WithTimeout(e.Context(), faultWait)
			defer cancel()
			e.parallel(writes, func(i int) error {
				rs[i] = apply1(ctx, e.Services[i%len(e.Services)], set(gs[i]))
				return nil
			})
		})
		for i, r := range rs {
			liked := e.has(gs[i]).Liked
			switch {
			case r.Err == nil:
				require.True(e, liked, "%s: acknowledged and lost", f.Name)
			case errors.Is(r.Err, likes.ErrUncertain):
			case errors.Is(r.Err, likes.ErrUnavailable), errors.Is(r.Err, likes.ErrOverloaded):
				require.False(e, liked, "%s: %v, and applied", f.Name, r.Err)
			default:
				require.NoError(e, fmt.Errorf("%s: not a kind that says what happened: %w", f.Name, r.Err))
			}
		}
		require.Equal(e, int64(len(e.likers(item, 100))), e.count(item).N)
	}
}

func checkFaultInvalid(e *env) {
	for _, f := range e.Faults {
		e.under(f, func() {
			s, ctx := e.any(), e.Context()
			require.ErrorIs(e, apply1(ctx, s, likes.Mutation{}).Err, likes.ErrInvalid)
			require.ErrorIs(e, s.Counts(ctx, likes.Likes, []likes.Item{{}}, nil)[0].Err, likes.ErrInvalid)
			require.ErrorIs(e, s.Has(ctx, likes.Likes, 1, []likes.Item{{}}, nil)[0].Err, likes.ErrInvalid)
			if _, _, err := s.Likers(ctx, likes.Likes, e.item(), "nonsense", 1); !e.Remote { // cursors are the server's
				require.ErrorIs(e, err, likes.ErrInvalid)
			}
		})
	}
}
