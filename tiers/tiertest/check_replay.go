package tiertest

import (
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

func replayChecks() []check {
	return []check{
		{name: "replays take effect if newer", run: checkReplayNewer, local: true},
		{name: "Superseded: a replay that was not newer than what is stored", run: checkSuperseded, local: true},
		{name: "an operation that changes nothing is recorded all the same", run: checkNoOpRecorded, local: true},
		{name: "of equal clocks the unlike wins", run: checkEqualClocks, local: true},
		{name: "replays commute: any order gives the same state", run: checkCommute, local: true},
		{name: "replays carry no count", run: checkReplayCount, local: true},
	}
}

// past is a clock before anything issued; n orders such clocks.
func past(n int) likes.Clock {
	return likes.ClockAt(time.Date(2020, 6, 1, 0, 0, n, 0, time.UTC), 1)
}

func checkReplayNewer(e *env) {
	g := e.edge()
	m := replay(likes.Set, g, past(2))
	m.LikedAt = past(1).Time()
	r := e.do(e.any(), m)
	require.Equal(e, likes.Changed, r.Outcome)
	e.settle()
	got := e.has(g)
	require.True(e, got.Liked)
	require.Equal(e, past(2), got.Clock, "a replay keeps its clock")
	require.True(e, past(1).Time().Equal(got.LikedAt))

	require.Equal(e, likes.Unchanged, e.do(e.any(), replay(likes.Set, g, past(3))).Outcome)
	e.settle()
	require.Equal(e, past(3), e.has(g).Clock)
	require.True(e, past(3).Time().Equal(e.has(g).LikedAt), "zero means at the clock")
	require.Equal(e, likes.Changed, e.do(e.any(), replay(likes.Clear, g, past(4))).Outcome)
	e.settle()
	require.False(e, e.has(g).Liked)
	require.Zero(e, e.count(g.Item).N)
}

func checkSuperseded(e *env) {
	g := e.edge()
	e.like(g)
	e.settle()
	before := e.has(g)
	for _, op := range []likes.Op{likes.Set, likes.Clear} {
		require.Equal(e, likes.Superseded, e.do(e.any(), replay(op, g, past(1))).Outcome)
	}
	require.Equal(e, likes.Superseded, e.do(e.any(), replay(likes.Set, g, before.Clock)).Outcome, "the same operation again")
	e.settle()
	after := e.has(g)
	require.True(e, before.LikedAt.Equal(after.LikedAt))
	require.Equal(e, before.Clock, after.Clock)
	require.True(e, after.Liked)
	require.Equal(e, int64(1), e.count(g.Item).N)
}

// checkNoOpRecorded repeats an operation and lets an older opposite one arrive
// late: it must lose against the repeat, not only against the original.
func checkNoOpRecorded(e *env) {
	for _, op := range []likes.Op{likes.Set, likes.Clear} {
		g := e.edge()
		m := likes.Mutation{Op: op, Edge: g}
		first := e.do(e.any(), m)
		second := e.do(e.any(), m)
		require.Greater(e, second.Version.Clock, first.Version.Clock)
		late := replay(likes.Set+likes.Clear-op, g, first.Version.Clock.Next())
		if late.Fixed >= second.Version.Clock {
			late.Fixed = first.Version.Clock + 1
		}
		require.Equal(e, likes.Superseded, e.do(e.any(), late).Outcome, "after %v twice", op)
		e.settle()
		require.Equal(e, op == likes.Set, e.has(g).Liked, "after %v twice", op)
		require.Equal(e, second.Version.Clock, e.has(g).Clock)
	}
}

func checkEqualClocks(e *env) {
	for _, first := range []likes.Op{likes.Set, likes.Clear} {
		g := e.edge()
		e.do(e.any(), replay(first, g, past(5)))
		e.do(e.any(), replay(likes.Set+likes.Clear-first, g, past(5)))
		e.settle()
		require.False(e, e.has(g).Liked, "%v first", first)
		require.Zero(e, e.count(g.Item).N)
	}
}

func checkCommute(e *env) {
	orders := [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}
	for last := range 2 {
		for _, order := range orders {
			g := e.edge()
			var ms []likes.Mutation
			for _, n := range order {
				op := likes.Set
				if (n+last)%2 == 1 {
					op = likes.Clear
				}
				ms = append(ms, replay(op, g, past(10+n)))
			}
			for _, m := range ms[:1] {
				e.do(e.any(), m)
			}
			for _, r := range e.any().Apply(e.Context(), ms[1:]) { // two in one call
				require.NoError(e, r.Err)
			}
			e.settle()
			require.Equal(e, last == 0, e.has(g).Liked, "order %v", order)
			require.Equal(e, past(12), e.has(g).Clock)
			require.Equal(e, last == 0, e.count(g.Item).N == 1)
		}
	}
}

func checkReplayCount(e *env) {
	r := e.do(e.any(), replay(likes.Set, e.edge(), past(1)))
	require.Equal(e, likes.Count{}, r.Count)
}
