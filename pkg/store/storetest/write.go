package storetest

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

func testIssueUnchanged(t *testing.T, s Store) {
	first := issue(t, s, set(1, 10, 100))[0]
	require.False(t, first.Was)
	require.Equal(t, int64(1), first.Count)

	again := issue(t, s, set(1, 10, 200))[0]
	require.True(t, again.Applied)
	require.True(t, again.Was)
	require.Equal(t, clockAt(200), again.Clock)
	require.Equal(t, int64(1), again.Count)
	require.Equal(t, first.Version, again.Version)

	// The repeat is on record: an older unlike that arrives late must lose.
	late := replay(t, s, clear(1, 10, 150))[0]
	require.Equal(t, store.Written{}, late)
	require.True(t, register(t, s, edge(1, 10)).Liked)
}

func testIssueClock(t *testing.T, s Store) {
	issue(t, s, set(1, 10, 1_000_000))
	got := issue(t, s, clear(1, 10, 5))[0]
	require.True(t, got.Was)
	require.Equal(t, clockAt(1_000_000).Next(), got.Clock)
	require.Zero(t, got.Count)
	require.Equal(t, got.Clock, register(t, s, edge(1, 10)).Clock)

	// The latest clock that a replay can bring leaves room above it.
	w := set(2, 10, 0)
	w.Clock = likes.MaxClock
	require.True(t, replay(t, s, w)[0].Applied)
	require.Equal(t, likes.MaxClock.Next(), issue(t, s, clear(2, 10, 5))[0].Clock)
	requireExact(t, s)
}

func testLikedAt(t *testing.T, s Store) {
	issue(t, s, set(1, 10, 100))
	issue(t, s, set(1, 10, 200))
	require.Equal(t, at(100), register(t, s, edge(1, 10)).LikedAt, "a repeat keeps when the like began")
	issue(t, s, clear(1, 10, 300))
	issue(t, s, set(1, 10, 400))
	require.Equal(t, at(400), register(t, s, edge(1, 10)).LikedAt, "a new like begins anew")

	again := set(1, 10, 450)
	again.Restarted = true
	require.True(t, issue(t, s, again)[0].Was)
	require.Equal(t, at(450), register(t, s, edge(1, 10)).LikedAt, "taken back and given again within one batch")

	w := set(1, 10, 500)
	w.LikedAt = at(-77)
	require.True(t, replay(t, s, w)[0].Applied)
	require.Equal(t, at(-77), register(t, s, edge(1, 10)).LikedAt, "a replay takes the whole row")
}

func testNoCounterRow(t *testing.T, s Store) {
	got := issue(t, s, clear(1, 10, 100))[0]
	require.Equal(t, store.Written{Applied: true, Clock: clockAt(100)}, got)
	require.Equal(t, likes.Register{Clock: clockAt(100)}.Clock, register(t, s, edge(1, 10)).Clock)

	issue(t, s, set(1, 20, 100))
	before := count(t, s, item(20))
	swap := issue(t, s, clear(1, 20, 200), set(2, 20, 200))
	require.Equal(t, []bool{true, false}, []bool{swap[0].Was, swap[1].Was})
	require.Equal(t, before, count(t, s, item(20)), "a like and an unlike in one batch cancel out")
	for _, w := range swap {
		require.Equal(t, before, store.CountRow{N: w.Count, Version: w.Version})
	}

	rows, err := s.Int(t.Context(), "select count(*) from counters")
	require.NoError(t, err)
	require.Equal(t, int64(1), rows, "only item 20 ever had a like")
	requireExact(t, s)
}

func testReplay(t *testing.T, s Store) {
	require.Equal(t, store.Written{Applied: true, Clock: clockAt(100)}, replay(t, s, set(1, 10, 100))[0])
	require.Equal(t, int64(1), count(t, s, item(10)).N)
	require.Equal(t, store.Written{}, replay(t, s, set(1, 10, 100))[0], "the same again")
	require.Equal(t, store.Written{}, replay(t, s, clear(1, 10, 99))[0], "an older one")
	require.Equal(t, store.Written{Applied: true, Was: true, Clock: clockAt(100)},
		replay(t, s, clear(1, 10, 100))[0], "of equal clocks the unlike wins")
	require.Equal(t, store.Written{}, replay(t, s, set(1, 10, 100))[0], "of equal clocks the unlike wins")
	require.Zero(t, count(t, s, item(10)).N)

	mixed := replay(t, s, set(1, 10, 50), set(2, 10, 50), set(3, 11, 50))
	require.Equal(t, []bool{false, true, true}, []bool{mixed[0].Applied, mixed[1].Applied, mixed[2].Applied})
	require.Equal(t, int64(1), count(t, s, item(10)).N)
	requireExact(t, s)
}

func testExtremeIDs(t *testing.T, s Store) {
	// 2^53 + 1 is the first integer that a double cannot hold.
	ids := []int64{1, 9007199254740993, math.MaxInt64 - 1, math.MaxInt64}
	types := []likes.ItemType{1, math.MaxInt16}
	var ws []store.Write
	for _, user := range ids {
		for _, id := range ids {
			for _, typ := range types {
				w := set(user, id, 1)
				w.Edge.Item.Type = typ
				ws = append(ws, w)
			}
		}
	}
	for _, w := range issue(t, s, ws...) {
		require.Equal(t, int64(len(ids)), w.Count)
	}
	for _, id := range ids {
		members, err := s.Likers(t.Context(), likes.Likes, item(id), 0, 10)
		require.NoError(t, err)
		for i, user := range ids {
			require.Equal(t, likes.Member{Edge: edge(user, id), LikedAt: at(1)}, members[i])
		}
		after, err := s.Likers(t.Context(), likes.Likes, item(id), likes.UserID(math.MaxInt64-1), 10)
		require.NoError(t, err)
		require.Len(t, after, 1)
	}
	members, err := s.LikedBy(t.Context(), likes.Likes, math.MaxInt64, likes.Item{Type: 1, ID: 9007199254740993}, 10)
	require.NoError(t, err)
	require.Len(t, members, 1+len(ids))
	require.Equal(t, item(1), members[0].Edge.Item)
	require.Equal(t, likes.Item{Type: math.MaxInt16, ID: math.MaxInt64}, members[1].Edge.Item)
	requireExact(t, s)
}

func testEmpty(t *testing.T, s Store) {
	require.NoError(t, s.Commit(t.Context(), store.Commit{}, nil))
	require.NoError(t, s.Counts(t.Context(), likes.Likes, nil, nil))
	require.NoError(t, s.Registers(t.Context(), likes.Likes, 1, nil, nil))
	a, err := s.AuditItem(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, store.Audit{}, a)
	drifts, checked := walk(t, s, 1)
	require.Empty(t, drifts)
	require.Zero(t, checked)
}

func testEndedContext(t *testing.T, s Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.Commit(ctx, store.Commit{Writes: []store.Write{set(1, 10, 1)}}, make([]store.Written, 1))
	require.Error(t, err)
	require.True(t, errors.Is(err, likes.ErrUnavailable) || errors.Is(err, likes.ErrUncertain), "%v", err)
	if errors.Is(err, likes.ErrUnavailable) {
		require.Equal(t, likes.Register{}, register(t, s, edge(1, 10)))
	}
	require.ErrorIs(t, s.Counts(ctx, likes.Likes, []likes.Item{item(10)}, make([]store.CountRow, 1)), likes.ErrUnavailable)
	requireExact(t, s)
}
