package storetest

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

// walkEdges walks behind an edge to the end.
func walkEdges(t testing.TB, s Store, after likes.Edge, limit int) (all []likes.Member) {
	t.Helper()
	for {
		page, err := s.WalkEdges(t.Context(), after, limit)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Members), limit)
		all = append(all, page.Members...)
		if page.Next == (likes.Edge{}) {
			return all
		}
		require.Positive(t, page.Next.Compare(after), "a walk must go forward")
		after = page.Next
	}
}

// testWalk walks over likes, saves and tombstones of several types, with ids up
// to the greatest.
func testWalk(t *testing.T, s Store) {
	random := rand.New(rand.NewPCG(3, 4))
	var ws []store.Write
	var want []likes.Member
	for n := range int64(400) {
		w := set(1+random.Int64N(9), 1+random.Int64N(9), n)
		w.Edge.Item.Type = likes.ItemType(1 + random.IntN(3))
		if random.IntN(3) == 0 {
			w.Edge.Counter = likes.Saves
		}
		if random.IntN(9) == 0 {
			w.Edge.User, w.Edge.Item.ID = 1<<63-1-w.Edge.User, 1<<63-1-w.Edge.Item.ID
		}
		w.Liked = random.IntN(3) > 0
		if !slices.ContainsFunc(ws, func(o store.Write) bool { return o.Edge == w.Edge }) {
			ws = append(ws, w)
		}
	}
	for _, w := range sorted(ws) {
		if w.Liked {
			want = append(want, likes.Member{Edge: w.Edge, LikedAt: w.LikedAt})
		}
	}
	issue(t, s, ws...)
	for _, limit := range []int{1, 7, 100, store.MaxWalk} {
		require.Equal(t, want, walkEdges(t, s, likes.Edge{}, limit), "limit %d", limit)
	}
	saves := slices.IndexFunc(want, func(m likes.Member) bool { return m.Edge.Counter == likes.Saves })
	require.Equal(t, want[saves:], walkEdges(t, s, likes.Edge{Counter: likes.Saves}, 10))
	require.Equal(t, want[20:], walkEdges(t, s, want[19].Edge, 10), "the edge itself is left out")

	for c, n := range map[likes.Counter]int{0: len(want), likes.Likes: saves, likes.Saves: len(want) - saves} {
		got, err := s.EstimateEdges(t.Context(), c)
		require.NoError(t, err)
		require.EqualValues(t, n, got)
	}
}

// testWalkSteps meets more tombstones than a step has edges.
func testWalkSteps(t *testing.T, s Store) {
	require.Empty(t, walkEdges(t, s, likes.Edge{}, 1), "an empty store")
	var ws []store.Write
	for user := int64(1); user <= 50; user++ {
		ws = append(ws, set(user, 10, 1))
	}
	issue(t, s, ws...)
	for i := range ws[:len(ws)-1] {
		ws[i].Liked, ws[i].Clock = false, clockAt(2)
	}
	issue(t, s, ws[:len(ws)-1]...)
	page, err := s.WalkEdges(t.Context(), likes.Edge{}, 20)
	require.NoError(t, err)
	require.Equal(t, store.EdgePage{Next: edge(20, 10)}, page, "a step is over after 20 edges, whatever they are")
	require.Equal(t, []likes.Member{{Edge: edge(50, 10), LikedAt: at(1)}}, walkEdges(t, s, likes.Edge{}, 20))
	for _, limit := range []int{-1, 0, store.MaxWalk + 1} {
		_, err := s.WalkEdges(t.Context(), likes.Edge{}, limit)
		require.ErrorIs(t, err, likes.ErrInvalid)
	}
}

// testWalkUnderWrites walks while edges come and go beside those that stay.
func testWalkUnderWrites(t *testing.T, s Store) {
	const stay = 60
	var ws []store.Write
	for n := int64(1); n <= stay; n++ {
		ws = append(ws, set(2*n, 10+n%3, n))
	}
	issue(t, s, ws...)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var done sync.WaitGroup
	errs := make(chan error, 2)
	done.Go(func() { errs <- toggle(ctx, t.Context(), s, 31, 10) })
	done.Go(func() { errs <- toggle(ctx, t.Context(), s, 31, 12) })
	for range 20 {
		seen := make(map[likes.Edge]int)
		for _, m := range walkEdges(t, s, likes.Edge{}, 7) {
			seen[m.Edge]++
		}
		for _, w := range ws {
			require.Equal(t, 1, seen[w.Edge])
		}
		require.LessOrEqual(t, seen[edge(31, 10)], 1)
		require.LessOrEqual(t, seen[edge(31, 12)], 1)
	}
	stop()
	done.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
}
