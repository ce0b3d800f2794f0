package tiertest

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

func readChecks() []check {
	return []check{
		{name: "an item that nobody ever liked has 0", run: checkNeverLiked},
		{name: "duplicates are fine", run: checkDuplicates},
		{name: "versions of other items are ignored", run: checkOtherVersions},
		{name: "where reads are the truth no version is waited for", run: checkNoWait},
		{name: "CountVersion grows by at least one with every change of the count", run: checkCountVersion, local: true},
		{name: "AsOf is an instant at which the count had this value", run: checkAsOf},
		{name: "Has has no false negatives within the contract's edge staleness", run: checkNoFalseNegative},
		{name: "0 if no operation ever touched the edge", run: checkUntouched},
	}
}

// retryNotYet reads until the answer is anything but ErrNotYet.
func retryNotYet[A any](e *env, read func() (A, error)) A {
	e.Helper()
	ctx, cancel := context.WithTimeout(e.Context(), patience)
	defer cancel()
	for {
		a, err := read()
		if !errors.Is(err, likes.ErrNotYet) {
			require.NoError(e, err)
			return a
		}
		require.NoError(e, ctx.Err(), "the version was never reached: %v", err)
	}
}

func checkNeverLiked(e *env) {
	c := e.count(e.item())
	require.Zero(e, c.N)
	require.Equal(e, likes.CountVersion{}, c.Version, "{0, 0} is a count that was never written")
	require.NotZero(e, c.Source)
}

func checkDuplicates(e *env) {
	g := e.edge()
	e.like(g)
	e.settle()
	other := e.item()
	asked := []likes.Item{g.Item, other, g.Item, g.Item, other}
	counts := e.any().Counts(e.Context(), likes.Likes, asked, nil)
	memberships := e.any().Has(e.Context(), likes.Likes, g.User, asked, nil)
	for i, item := range asked {
		require.NoError(e, counts[i].Err)
		require.Equal(e, item == g.Item, counts[i].N == 1, "position %d", i)
		require.Equal(e, item == g.Item, memberships[i].Liked, "position %d", i)
	}
}

func checkOtherVersions(e *env) {
	g, other := e.edge(), e.edge()
	e.like(g)
	e.settle()
	never := []likes.Version{{Edge: other, Clock: likes.MaxClock}}
	c := e.any().Counts(e.Context(), likes.Likes, []likes.Item{g.Item}, never)[0]
	require.NoError(e, c.Err)
	require.Equal(e, int64(1), c.N)
	m := e.any().Has(e.Context(), likes.Likes, g.User, []likes.Item{g.Item}, never)[0]
	require.NoError(e, m.Err)
	require.True(e, m.Liked)
}

// checkNoWait asks every instance for what was just answered, once: whoever asks
// again on ErrNotYet would wait.
func checkNoWait(e *env) {
	if e.contract.CountStaleness > 0 || e.contract.EdgeStaleness > 0 {
		return
	}
	const rounds = 20
	for n := range rounds {
		g := e.edge()
		seen := []likes.Version{e.like(g).Version}
		if n%2 == 1 {
			seen[0] = e.unlike(g).Version
		}
		for _, s := range e.Services {
			c := s.Counts(e.Context(), g.Counter, []likes.Item{g.Item}, seen)[0]
			require.NoError(e, c.Err)
			require.EqualValues(e, 1-n%2, c.N)
			m := s.Has(e.Context(), g.Counter, g.User, []likes.Item{g.Item}, seen)[0]
			require.NoError(e, m.Err)
			require.Equal(e, n%2 == 0, m.Liked)
		}
	}
}

func checkCountVersion(e *env) {
	g := e.edge()
	last := e.count(g.Item).Version
	for n := range 6 {
		if n%2 == 0 {
			e.like(g)
		} else {
			e.unlike(g)
		}
		e.settle()
		v := e.count(g.Item).Version
		require.Greater(e, v.N, last.N, "after change %d", n)
		last = v
	}
	e.unlike(g) // changes nothing
	e.settle()
	require.GreaterOrEqual(e, e.count(g.Item).Version.N, last.N)
}

func checkAsOf(e *env) {
	// The instances' clocks and this one may differ a little.
	const apart = 2 * time.Second
	g := e.edge()
	before := time.Now()
	r := e.like(g)
	c := e.count(g.Item)
	if e.Remote {
		r = likes.Result{Count: c} // an answer to a write has no time
	}
	for _, asOf := range []time.Time{r.Count.AsOf, c.AsOf} {
		require.True(e, asOf.After(before.Add(-apart-e.contract.CountStaleness)), "%v is long before %v", asOf, before)
		require.True(e, asOf.Before(time.Now().Add(apart)), "%v has not come", asOf)
	}
}

func checkNoFalseNegative(e *env) {
	const clients, rounds = 8, 40
	e.parallel(clients, func(int) error {
		user := e.user()
		for range rounds {
			g := likes.Edge{Counter: likes.Likes, Item: e.item(), User: user}
			if r := apply1(e.Context(), e.any(), set(g)); r.Err != nil {
				return r.Err
			}
			liked := time.Now()
			for _, s := range e.Services {
				m := s.Has(e.Context(), g.Counter, user, []likes.Item{g.Item}, nil)[0]
				if m.Err != nil {
					return m.Err
				}
				if !m.Liked && time.Since(liked) > e.contract.EdgeStaleness {
					return errors.New("a false no for an acknowledged like: " + g.String())
				}
			}
		}
		return nil
	})
}

func checkUntouched(e *env) {
	g := e.edge()
	require.Equal(e, likes.Membership{}, e.has(g))
	e.unlike(g) // leaves a tombstone
	e.settle()
	m := e.has(g)
	require.False(e, m.Liked)
	require.True(e, m.Clock != 0 || e.Remote, "an unlike is recorded")
	require.True(e, m.LikedAt.IsZero())
}
