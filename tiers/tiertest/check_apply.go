package tiertest

import (
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

func applyChecks() []check {
	return []check{
		{name: "each one is atomic and durable when its result has no error", run: checkDurable, needs: func(e *env) bool { return e.Restart != nil }},
		{name: "together they are not a transaction", run: checkNoTransaction},
		{name: "mutations of one call on the same edge take effect in their order", run: checkOrder},
		{name: "issued operations always take effect", run: checkIssuedWins, local: true},
		{name: "repeating one is safe: a second Set by the same user changes nothing", run: checkRepeat},
		{name: "Changed is given to exactly one of concurrent equal operations", run: checkExactChanged},
		{name: "After is a clock that an issued operation must be later than", run: checkAfter, local: true},
		{name: "LikedAt is when the like began, zero means at the clock", run: checkLikedAt, local: true},
		{name: "Count includes this one and is a value the count really had", run: checkResultCount},
		{name: "a client that carries the version reads its own write on every instance", run: checkVersion},
		{name: "counters are apart: a save is not a like", run: checkCounters},
	}
}

// changed requires an outcome of an issued operation as far as the contract
// calls it exact.
func (e *env) changed(want bool, r likes.Result) {
	e.Helper()
	require.NoError(e, r.Err)
	if !e.contract.ExactChanged {
		require.Contains(e, []likes.Outcome{likes.Changed, likes.Unchanged, likes.Accepted}, r.Outcome)
		return
	}
	outcome := likes.Unchanged
	if want {
		outcome = likes.Changed
	}
	require.Equal(e, outcome, r.Outcome, "outcome on %v", r.Version.Edge)
}

func checkDurable(e *env) {
	item := e.item()
	users := e.users(300)
	rs := e.bulk(mutations(set, edges(item, users...)...))
	e.bulk(mutations(clr, edges(item, users[200:]...)...))
	for i := range e.Services {
		s, err := e.Restart(e.Context(), i)
		require.NoError(e, err)
		e.Services[i] = s
	}
	e.exact(item, users[:200], users[200:]...)
	require.Equal(e, rs[0].Version.Clock, e.has(rs[0].Version.Edge).Clock, "the clock survives too")
}

func checkNoTransaction(e *env) {
	good := mutations(set, e.edge(), e.edge())
	rs := e.any().Apply(e.Context(), []likes.Mutation{good[0], {}, good[1]})
	require.ErrorIs(e, rs[1].Err, likes.ErrInvalid)
	e.settle()
	for i, r := range []likes.Result{rs[0], rs[2]} {
		require.Equal(e, r.Err == nil, e.has(good[i].Edge).Liked)
	}
}

func checkOrder(e *env) {
	for _, ops := range []string{"lu", "ul", "lul", "ulu", "llu", "luu", "lulul", "ll", "uu"} {
		g := e.edge()
		var ms []likes.Mutation
		for _, op := range ops {
			m := set(g)
			if op == 'u' {
				m = clr(g)
			}
			ms = append(ms, m)
		}
		rs := e.any().Apply(e.Context(), ms)
		liked := false
		for i, m := range ms {
			require.NoError(e, rs[i].Err)
			e.changed(liked != (m.Op == likes.Set), rs[i])
			liked = m.Op == likes.Set
			if i > 0 { // equal where both became one write
				require.GreaterOrEqual(e, rs[i].Version.Clock, rs[i-1].Version.Clock, "%s: clocks follow the order", ops)
			}
		}
		e.settle()
		require.Equal(e, liked, e.has(g).Liked, ops)
		require.Equal(e, liked, e.count(g.Item).N == 1, ops)
	}
}

// checkIssuedWins issues over a register from the future, as a clock that runs
// behind would.
func checkIssuedWins(e *env) {
	future := likes.ClockAt(time.Now().AddDate(20, 0, 0), 7)
	g := e.edge()
	e.do(e.any(), replay(likes.Set, g, future))
	e.settle()
	e.changed(true, e.unlike(g))
	e.settle()
	require.False(e, e.has(g).Liked, "an acknowledged unlike lost against a greater clock")
	require.Greater(e, e.has(g).Clock, future)
	e.changed(true, e.like(g))
	e.settle()
	require.True(e, e.has(g).Liked)
	require.Equal(e, int64(1), e.count(g.Item).N)
}

func checkRepeat(e *env) {
	g := e.edge()
	e.changed(false, e.unlike(g)) // of a like that never was
	e.settle()
	require.Zero(e, e.count(g.Item).N)
	for i, s := range e.Services {
		e.changed(i == 0, e.do(s, set(g)))
		e.settle()
		require.Equal(e, int64(1), e.count(g.Item).N)
	}
	began := e.has(g).LikedAt
	e.like(g)
	e.settle()
	require.True(e, began.Equal(e.has(g).LikedAt), "a repeat does not begin the like anew")
	for i, s := range e.Services {
		e.changed(i == 0, e.do(s, clr(g)))
		e.settle()
		require.Zero(e, e.count(g.Item).N)
	}
}

func checkExactChanged(e *env) {
	const copies, rounds = 24, 10
	g := e.edge()
	for n := range rounds {
		op, want := set, int64(1)
		if n%2 == 1 {
			op, want = clr, 0
		}
		rs := make([]likes.Result, copies)
		e.parallel(copies, func(i int) error {
			rs[i] = apply1(e.Context(), e.Services[i%len(e.Services)], op(g))
			return rs[i].Err
		})
		changed := 0
		for _, r := range rs {
			if r.Outcome == likes.Changed {
				changed++
			}
		}
		if e.contract.ExactChanged {
			require.Equal(e, 1, changed, "round %d", n)
		}
		e.settle()
		require.Equal(e, want, e.count(g.Item).N)
	}
}

func checkAfter(e *env) {
	g := e.edge()
	after := likes.ClockAt(time.Now().Add(time.Hour), 3)
	r := e.do(e.any(), likes.Mutation{Op: likes.Set, Edge: g, After: after})
	require.Greater(e, r.Version.Clock, after)
	e.settle()
	require.Equal(e, r.Version.Clock, e.has(g).Clock)
}

func checkLikedAt(e *env) {
	given := time.Date(2021, 2, 3, 4, 5, 6, 789_012_000, time.UTC)
	g := e.edge()
	m := set(g)
	m.LikedAt = given
	e.do(e.any(), m)
	e.settle()
	require.True(e, given.Equal(e.has(g).LikedAt), "%v is not %v", e.has(g).LikedAt, given)
	e.unlike(g)
	e.settle()
	require.True(e, e.has(g).LikedAt.IsZero(), "LikedAt is zero while not liked")
	require.NotZero(e, e.has(g).Clock)

	r := e.like(g)
	e.settle()
	require.WithinDuration(e, r.Version.Clock.Time(), e.has(g).LikedAt, time.Second)
	page, _, err := e.any().Likers(e.Context(), likes.Likes, g.Item, "", 10)
	require.NoError(e, err)
	require.True(e, e.has(g).LikedAt.Equal(page[0].LikedAt), "the listing shows the same instant")
}

func checkResultCount(e *env) {
	item := e.item()
	users := e.users(5)
	version := likes.CountVersion{}
	for i, g := range edges(item, users...) {
		r := e.like(g)
		require.Equal(e, int64(i+1), r.Count.N, "includes this one")
		if e.contract.CountStaleness == 0 {
			require.Equal(e, r.Count.N, e.count(item).N)
		}
		if e.contract.CountStaleness == 0 && !e.Remote {
			require.Equal(e, r.Count.Version, e.count(item).Version)
			require.Less(e, version.N, r.Count.Version.N, "the version grows with every change")
			version = r.Count.Version
		}
		e.settle()
	}
	require.Equal(e, int64(4), e.unlike(edges(item, users...)[0]).Count.N)
}

func checkVersion(e *env) {
	if !e.contract.ReadYourWrites {
		return
	}
	item := e.item()
	for i, g := range edges(item, e.users(20)...) {
		r := e.do(e.Services[i%len(e.Services)], set(g))
		require.Equal(e, g, r.Version.Edge)
		if e.Remote {
			require.NotEmpty(e, r.Version.Mark, "the token of the version")
		} else {
			require.Positive(e, r.Version.Clock)
		}
		seen := []likes.Version{r.Version}
		for _, s := range e.Services {
			c := retryNotYet(e, func() (likes.Count, error) {
				c := s.Counts(e.Context(), likes.Likes, []likes.Item{item}, seen)[0]
				return c, c.Err
			})
			require.Equal(e, int64(i+1), c.N)
			m := retryNotYet(e, func() (likes.Membership, error) {
				m := s.Has(e.Context(), likes.Likes, g.User, []likes.Item{item}, seen)[0]
				return m, m.Err
			})
			require.True(e, m.Liked)
			require.GreaterOrEqual(e, m.Clock, r.Version.Clock)
		}
	}
}

func checkCounters(e *env) {
	g := e.edge()
	save := g
	save.Counter = likes.Saves
	e.changed(true, e.like(save))
	e.settle()
	require.Zero(e, e.count(g.Item).N)
	require.Equal(e, int64(1), e.countOf(likes.Saves, g.Item).N)
	require.False(e, e.has(g).Liked)
	require.True(e, e.has(save).Liked)
	e.changed(true, e.like(g))
	e.changed(true, e.unlike(save))
	e.settle()
	require.Zero(e, e.countOf(likes.Saves, g.Item).N)
	require.Equal(e, []likes.UserID{g.User}, e.likers(g.Item, 10))
}
