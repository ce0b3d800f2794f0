package tiertest

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

// caseCheck shows one row of the table at the service interface.
type caseCheck struct {
	number int
	run    func(*env)
	needs  func(*env) bool
	local  bool // as in check
}

func serviceCases() []caseCheck {
	return []caseCheck{
		{number: 1, run: case1},
		{number: 2, run: case2},
		{number: 4, run: case4},
		{number: 8, run: case8},
		{number: 9, run: case9, local: true},
		{number: 10, run: case10},
		{number: 17, run: case17},
		{number: 18, run: case18},
		{number: 26, run: case26},
		{number: 30, run: case30, needs: needsAuditor},
		{number: 32, run: case32},
		{number: 35, run: case35},
		{number: 45, run: checkResultCount},
		{number: 73, run: case73, needs: needsAuditor},
		{number: 108, run: func(e *env) { checkWalk(e, 5565, likes.MaxPage/4) }},
	}
}

// atOnce applies the mutation n times at once, through all instances, and
// returns how many said that they changed something.
func (e *env) atOnce(n int, m likes.Mutation) int {
	e.Helper()
	var changed atomic.Int64
	e.parallel(n, func(i int) error {
		r := apply1(e.Context(), e.Services[i%len(e.Services)], m)
		if r.Outcome == likes.Changed {
			changed.Add(1)
		}
		return r.Err
	})
	return int(changed.Load())
}

func case1(e *env) {
	const copies = 50
	g := e.edge()
	for _, m := range []likes.Mutation{set(g), clr(g)} {
		require.LessOrEqual(e, e.atOnce(copies, m), 1, "%v", m.Op)
		e.settle()
		require.Equal(e, m.Op == likes.Set, e.count(g.Item).N == 1, "%v", m.Op)
	}
	require.Zero(e, e.count(g.Item).N)
}

func case2(e *env) {
	g := e.edge()
	e.atOnce(200, set(g))
	e.exact(g.Item, []likes.UserID{g.User})
}

func case4(e *env) {
	const users, toggles = 20, 400
	item := e.item()
	gs := edges(item, e.users(users)...)
	e.parallel(toggles, func(int) error {
		m := set(gs[rand.IntN(users)])
		if rand.IntN(2) == 0 {
			m.Op = likes.Clear
		}
		return apply1(e.Context(), e.any(), m).Err
	})
	e.agree(item, gs)
}

// agree requires that all views of an item, asked of all instances, agree.
func (e *env) agree(item likes.Item, gs []likes.Edge) {
	e.Helper()
	e.settle()
	var liked []likes.UserID
	for _, g := range gs {
		if e.has(g).Liked {
			liked = append(liked, g.User)
		}
	}
	slices.Sort(liked)
	for _, s := range e.Services {
		single := s.Counts(e.Context(), likes.Likes, []likes.Item{item}, nil)[0]
		many := s.Counts(e.Context(), likes.Likes, []likes.Item{e.item(), item, e.item(), item}, nil)
		listed, err := walkLikers(e.Context(), s, item, 7)
		require.NoError(e, err)
		require.Equal(e, liked, listed)
		for _, c := range []likes.Count{single, many[1], many[3]} {
			require.NoError(e, c.Err)
			require.Equal(e, int64(len(liked)), c.N)
		}
		require.Zero(e, many[0].N+many[2].N)
	}
}

func case8(e *env) {
	const likers, unlikes = 10, 1000
	item := e.item()
	e.bulk(mutations(set, edges(item, e.users(likers)...)...))
	e.settle()
	never := edges(item, e.user())[0]
	var wrong, changed atomic.Int64
	e.parallel(unlikes, func(i int) error {
		s := e.Services[i%len(e.Services)]
		r := apply1(e.Context(), s, clr(never))
		if r.Err != nil {
			return r.Err
		}
		if r.Outcome == likes.Changed {
			changed.Add(1)
		}
		c := s.Counts(e.Context(), likes.Likes, []likes.Item{item}, nil)[0]
		if c.N != likers {
			wrong.Add(1)
		}
		return c.Err
	})
	require.Zero(e, changed.Load(), "an unlike of nothing reported a change")
	require.Zero(e, wrong.Load(), "the count was seen at something else than 10")
}

func case9(e *env) {
	g := e.edge()
	e.like(g)
	late := e.unlike(g)
	e.unlike(g)
	e.do(e.any(), replay(likes.Clear, g, late.Version.Clock)) // delivered again
	e.unlike(g)
	e.settle()
	require.Zero(e, e.count(g.Item).N)
}

// case10 scans what chaos leaves: unlikes of nothing, repeats, replays of both
// kinds, in any order, and no value is below 0 at any time.
func case10(e *env) {
	const items, ops = 50, 600
	all := make([]likes.Item, items)
	for i := range all {
		all[i] = e.item()
	}
	users := e.users(5)
	var below atomic.Int64
	e.parallel(ops, func(n int) error {
		g := likes.Edge{Counter: likes.Likes, Item: all[rand.IntN(items)], User: users[rand.IntN(len(users))]}
		m := clr(g)
		if rand.IntN(3) == 0 {
			m.Op = likes.Set
		}
		if rand.IntN(3) == 0 && !e.Remote {
			m.Fixed = past(100 + n)
		}
		if r := apply1(e.Context(), e.any(), m); r.Err != nil {
			return r.Err
		}
		for _, c := range e.any().Counts(e.Context(), likes.Likes, all, nil) {
			if c.Err != nil {
				return c.Err
			}
			if c.N < 0 {
				below.Add(1)
			}
		}
		return nil
	})
	require.Zero(e, below.Load(), "counts below 0")
	for _, item := range all {
		e.agree(item, edges(item, users...))
	}
}

func case17(e *env) {
	never, known := e.edge(), e.edge()
	e.like(edges(known.Item, e.user())[0])
	e.settle()
	a, b := e.unlike(never), e.unlike(known)
	require.Equal(e, a.Outcome, b.Outcome)
	e.changed(false, a)
	e.settle()
	c := e.count(never.Item)
	require.Zero(e, c.N)
	require.Equal(e, likes.CountVersion{}, c.Version, "a counter came to be for an item nobody ever liked")
	require.Equal(e, int64(1), e.count(known.Item).N)
}

func case18(e *env) {
	const n = 1000
	item, user := e.item(), e.user()
	var gs []likes.Edge
	for range n {
		gs = append(gs, likes.Edge{Counter: likes.Likes, Item: e.item(), User: user})
	}
	e.bulk(mutations(set, edges(item, e.users(n)...)...))
	e.bulk(mutations(set, gs...))
	e.settle()
	require.Equal(e, int64(n), e.count(item).N)
	for from := 0; from < n; from += likes.MaxRead {
		var asked []likes.Item
		for _, g := range gs[from : from+likes.MaxRead] {
			asked = append(asked, g.Item)
		}
		for i, c := range e.any().Counts(e.Context(), likes.Likes, asked, nil) {
			require.NoError(e, c.Err)
			require.Equal(e, int64(1), c.N, "%v", asked[i])
		}
	}
	got, err := e.likedBy(user, 300)
	require.NoError(e, err)
	require.Len(e, got, n)
}

func case26(e *env) {
	const n, clients = 5000, 256
	item := e.item()
	gs := edges(item, e.users(n)...)
	var next atomic.Int64
	e.parallel(clients, func(client int) error {
		for {
			i := int(next.Add(1)) - 1
			if i >= n {
				return nil
			}
			if r := apply1(e.Context(), e.Services[client%len(e.Services)], set(gs[i])); r.Err != nil {
				return r.Err
			}
		}
	})
	e.settle()
	for _, s := range e.Services {
		c := s.Counts(e.Context(), likes.Likes, []likes.Item{item}, nil)[0]
		require.NoError(e, c.Err)
		require.Equal(e, int64(n), c.N)
	}
}

func case32(e *env) {
	item := e.item()
	gs := edges(item, e.users(64)...)
	e.whileToggling(gs, func() {
		for range 20 { // the storm also has readers
			e.likers(item, 10)
		}
	})
	e.agree(item, gs)
}

func case35(e *env) {
	for range 5 {
		item := e.item()
		gs := edges(item, e.users(9)...)
		for range 30 {
			m := set(gs[rand.IntN(len(gs))])
			if rand.IntN(2) == 0 {
				m.Op = likes.Clear
			}
			e.do(e.any(), m)
		}
		e.agree(item, gs)
	}
}
