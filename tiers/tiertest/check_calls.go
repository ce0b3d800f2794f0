package tiertest

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

// callChecks are about the calls themselves: positions, sizes, contexts.
func callChecks() []check {
	return []check{
		{name: "all methods answer by position: result i belongs to argument i", run: checkPositions},
		{name: "arguments over the maximum sizes give ErrInvalid", run: checkSizes},
		{name: "malformed arguments give ErrInvalid for the whole call or for the entry", run: checkMalformed},
		{name: "a context that ends gives ErrUncertain; the work is not taken back", run: checkContext},
		{name: "all methods are safe for concurrent use", run: checkConcurrentUse},
	}
}

func checkPositions(e *env) {
	items, user := []likes.Item{e.item(), e.item(), e.item(), e.item()}, e.user()
	var gs []likes.Edge
	for n, item := range items { // item n gets n likes, the user's own from 1 on
		others := e.users(n)
		if n > 0 {
			others[0] = user
		}
		gs = append(gs, edges(item, others...)...)
	}
	rs := e.any().Apply(e.Context(), mutations(set, gs...))
	require.Len(e, rs, len(gs))
	for i, r := range rs {
		require.NoError(e, r.Err)
		require.Equal(e, gs[i], r.Version.Edge)
	}
	e.settle()
	asked := []likes.Item{items[3], items[0], items[2], items[3], items[1]}
	counts := e.any().Counts(e.Context(), likes.Likes, asked, nil)
	memberships := e.any().Has(e.Context(), likes.Likes, user, asked, nil)
	require.Len(e, counts, len(asked))
	require.Len(e, memberships, len(asked))
	for i, want := range []int64{3, 0, 2, 3, 1} {
		require.NoError(e, counts[i].Err)
		require.NoError(e, memberships[i].Err)
		require.Equal(e, want, counts[i].N, "position %d", i)
		require.Equal(e, want > 0, memberships[i].Liked, "position %d", i)
	}
}

func checkSizes(e *env) {
	item, user := e.item(), e.user()
	many := func(n int) []likes.Item {
		items := make([]likes.Item, n)
		for i := range items {
			items[i] = likes.Item{Type: item.Type, ID: item.ID + likes.ItemID(i)}
		}
		return items
	}
	e.next.Add(likes.MaxRead) // the items above are taken
	for _, s := range e.Services {
		for _, r := range s.Apply(e.Context(), mutations(set, edges(item, e.users(likes.MaxApply+1)...)...)) {
			require.ErrorIs(e, r.Err, likes.ErrInvalid)
		}
		require.Empty(e, s.Apply(e.Context(), nil))
		for _, c := range s.Counts(e.Context(), likes.Likes, many(likes.MaxRead+1), nil) {
			require.ErrorIs(e, c.Err, likes.ErrInvalid)
		}
		for _, m := range s.Has(e.Context(), likes.Likes, user, many(likes.MaxRead+1), nil) {
			require.ErrorIs(e, m.Err, likes.ErrInvalid)
		}
		require.Empty(e, s.Counts(e.Context(), likes.Likes, nil, nil))
		require.Empty(e, s.Has(e.Context(), likes.Likes, user, nil, nil))
		for _, c := range s.Counts(e.Context(), likes.Likes, many(likes.MaxRead), nil) {
			require.NoError(e, c.Err)
		}
		for _, m := range s.Has(e.Context(), likes.Likes, user, many(likes.MaxRead), nil) {
			require.NoError(e, m.Err)
		}
		for _, limit := range []int{-1, 0, likes.MaxPage + 1} {
			_, _, err := s.Likers(e.Context(), likes.Likes, item, "", limit)
			require.ErrorIs(e, err, likes.ErrInvalid, "limit %d", limit)
			_, _, err = s.LikedBy(e.Context(), likes.Likes, user, "", limit)
			require.ErrorIs(e, err, likes.ErrInvalid, "limit %d", limit)
		}
	}
	e.settle()
	require.Zero(e, e.count(item).N, "a refused call applied something")
}

func checkMalformed(e *env) {
	good := e.edge()
	bad := map[string]likes.Mutation{
		"no operation":     {Edge: e.edge()},
		"user 0":           set(likes.Edge{Counter: likes.Likes, Item: good.Item}),
		"negative user":    set(likes.Edge{Counter: likes.Likes, Item: good.Item, User: -1}),
		"item 0":           set(likes.Edge{Counter: likes.Likes, Item: likes.Item{Type: 1}, User: 1}),
		"type 0":           set(likes.Edge{Counter: likes.Likes, Item: likes.Item{ID: 1}, User: 1}),
		"no counter":       set(likes.Edge{Item: good.Item, User: 1}),
		"a like of tally":  set(likes.Edge{Counter: likes.Views, Item: good.Item, User: 1}),
		"a like by event":  {Op: likes.Set, Edge: good, Event: e.event()},
		"an add to a set":  {Op: likes.Add, Edge: good, Event: e.event()},
		"an add, no event": {Op: likes.Add, Edge: likes.Edge{Counter: likes.Views, Item: good.Item}},
		"an add by -1":     {Op: likes.Add, Edge: likes.Edge{Counter: likes.Views, Item: good.Item, User: -1}, Event: e.event()},
		"an add, item 0":   {Op: likes.Add, Edge: likes.Edge{Counter: likes.Views}, Event: e.event()},
		"clock too great":  replay(likes.Set, good, likes.MaxClock+1),
		"clock below zero": replay(likes.Set, good, -1),
		"after too great":  {Op: likes.Set, Edge: good, After: math.MaxInt64},
	}
	for name, m := range bad {
		valid := set(e.edge())
		rs := e.any().Apply(e.Context(), []likes.Mutation{valid, m, valid})
		require.Len(e, rs, 3, name)
		require.ErrorIs(e, rs[1].Err, likes.ErrInvalid, name)
		require.Equal(e, likes.Result{Err: rs[1].Err}, rs[1], "%s: if Err is set nothing else is", name)
		e.settle()
		applied := rs[0].Err == nil
		require.Equal(e, applied, e.has(valid.Edge).Liked, "%s: a valid neighbour is applied if and only if it is answered", name)
	}
	require.Zero(e, e.count(good.Item).N)
	require.Zero(e, e.countOf(likes.Views, good.Item).N)
	ctx, s := e.Context(), e.any()
	for _, item := range []likes.Item{{}, {Type: 1}, {ID: 1}, {Type: -1, ID: 1}, {Type: 1, ID: -1}} {
		asked := []likes.Item{good.Item, item}
		require.ErrorIs(e, s.Counts(ctx, likes.Likes, asked, nil)[1].Err, likes.ErrInvalid)
		require.ErrorIs(e, s.Has(ctx, likes.Likes, 1, asked, nil)[1].Err, likes.ErrInvalid)
		_, _, err := s.Likers(ctx, likes.Likes, item, "", 10)
		require.ErrorIs(e, err, likes.ErrInvalid)
	}
	require.ErrorIs(e, s.Counts(ctx, 5, []likes.Item{good.Item}, nil)[0].Err, likes.ErrInvalid)
	require.ErrorIs(e, s.Has(ctx, likes.Likes, 0, []likes.Item{good.Item}, nil)[0].Err, likes.ErrInvalid)
	_, _, err := s.LikedBy(ctx, likes.Likes, -1, "", 10)
	require.ErrorIs(e, err, likes.ErrInvalid)
}

// checkContext ends calls at many moments and compares what was answered with
// what is there.
func checkContext(e *env) {
	const calls = 200
	item := e.item()
	gs := edges(item, e.users(calls)...)
	rs := make([]likes.Result, calls)
	e.parallel(calls, func(i int) error {
		ctx, cancel := context.WithTimeout(e.Context(), time.Duration(i)*20*time.Microsecond)
		defer cancel()
		rs[i] = apply1(ctx, e.any(), set(gs[i]))
		return nil
	})
	// "Not taken back" means that uncertain ones may still be on their way:
	// an answered write on the same item is behind them in every queue.
	last := e.edge()
	for _, s := range e.Services {
		last.User = e.user()
		last.Item = item
		e.do(s, set(last))
	}
	e.settle()
	for i, r := range rs {
		liked := e.has(gs[i]).Liked
		switch {
		case r.Err == nil:
			require.True(e, liked, "answered without an error and not there")
		case errors.Is(r.Err, likes.ErrUncertain):
		case errors.Is(r.Err, likes.ErrUnavailable), errors.Is(r.Err, likes.ErrOverloaded):
			require.False(e, liked, "%v says that nothing was applied", r.Err)
		default:
			require.NoError(e, r.Err, "not a kind that says what happened")
		}
	}
	require.Equal(e, int64(len(e.likers(item, 100))), e.count(item).N)
}

func checkConcurrentUse(e *env) {
	const clients, rounds = 16, 20
	item := e.item()
	gs := edges(item, e.users(clients)...)
	var bad atomic.Int64
	e.parallel(clients, func(i int) error {
		for n := range rounds {
			s, m := e.any(), set(gs[i])
			if n%2 == 1 {
				m = clr(gs[i])
			}
			if r := apply1(e.Context(), s, m); r.Err != nil {
				return r.Err
			}
			if c := s.Counts(e.Context(), likes.Likes, []likes.Item{item}, nil)[0]; c.Err != nil {
				return c.Err
			} else if c.N < 0 || c.N > clients {
				bad.Add(1)
			}
			if _, _, err := s.LikedBy(e.Context(), likes.Likes, gs[i].User, "", 10); err != nil {
				return err
			}
			if _, err := walkLikers(e.Context(), s, item, 5); err != nil {
				return err
			}
		}
		return nil
	})
	require.Zero(e, bad.Load(), "counts outside 0 to %d", clients)
	e.exact(item, nil, gs[0].User)
}
