package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

// parallel runs f n times at once and fails on the first error.
func parallel(t testing.TB, n int, f func(ctx context.Context, i int) error) {
	t.Helper()
	var done sync.WaitGroup
	errs := make([]error, n)
	start := make(chan struct{})
	for i := range n {
		done.Go(func() {
			<-start
			errs[i] = f(t.Context(), i)
		})
	}
	close(start)
	done.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

// testEqualLikes lets many clients like the same new edge at once: one of them
// finds it new, and nobody is told a count without that like.
func testEqualLikes(t *testing.T, s Store) {
	const rounds, clients = 50, 8
	for round := range int64(rounds) {
		var first atomic.Int64
		parallel(t, clients, func(ctx context.Context, i int) error {
			out := make([]store.Written, 1)
			err := s.Commit(ctx, store.Commit{Writes: []store.Write{set(1, round+1, int64(i))}}, out)
			if !out[0].Was {
				first.Add(1)
			}
			if err == nil && out[0].Count != 1 {
				err = fmt.Errorf("count %d with was=%t, want 1", out[0].Count, out[0].Was)
			}
			return err
		})
		require.Equal(t, int64(1), first.Load())
	}
	requireExact(t, s)
}

// testOverlap commits large random batches over few edges and items.
func testOverlap(t *testing.T, s Store) {
	const writers, rounds, most = 8, 25, 40
	parallel(t, writers, func(ctx context.Context, i int) error {
		random := rand.New(rand.NewPCG(uint64(i), 2))
		for n := range int64(rounds) {
			edges := make(map[likes.Edge]store.Write)
			for range most {
				w := set(1+random.Int64N(8), 1+random.Int64N(8), n)
				w.Liked = random.IntN(2) == 0
				edges[w.Edge] = w
			}
			c := store.Commit{Replay: i%4 == 3}
			for _, w := range edges {
				c.Writes = append(c.Writes, w)
			}
			sorted(c.Writes)
			if err := s.Commit(ctx, c, make([]store.Written, len(c.Writes))); err != nil {
				return fmt.Errorf("writer %d round %d: %w", i, n, err)
			}
		}
		return nil
	})
	requireExact(t, s)
}

// testSnapshots audits again and again while writers run: not once may a
// snapshot show a count that is not its edges, or a negative one.
func testSnapshots(t *testing.T, s Store) {
	const writers, audits = 4, 40
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var done sync.WaitGroup
	errs := make(chan error, writers)
	for w := range int64(writers) {
		done.Go(func() { errs <- toggle(ctx, t.Context(), s, w/2+1, w%2+1) })
	}
	for range audits {
		requireExact(t, s)
		for id := int64(1); id <= 2; id++ {
			n := count(t, s, item(id)).N
			require.GreaterOrEqual(t, n, int64(0))
			require.LessOrEqual(t, n, int64(writers/2))
		}
	}
	stop()
	done.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
}

// testPagesUnderWrites walks pages while others come and go around the users
// and items that stay: who stays is seen exactly once.
func testPagesUnderWrites(t *testing.T, s Store) {
	const stay = 60
	var ws []store.Write
	for n := int64(1); n <= stay; n++ {
		ws = append(ws, set(2*n, 10, n), set(1, 100+2*n, n))
	}
	issue(t, s, ws...)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var done sync.WaitGroup
	errs := make(chan error, 2)
	done.Go(func() { errs <- toggle(ctx, t.Context(), s, 31, 10) })
	done.Go(func() { errs <- toggle(ctx, t.Context(), s, 1, 131) })
	for range 10 {
		seen := make(map[likes.UserID]int)
		for after, more := likes.UserID(0), true; more; {
			page, err := s.Likers(t.Context(), likes.Likes, item(10), after, 7)
			require.NoError(t, err)
			for _, m := range page {
				seen[m.Edge.User]++
				after = m.Edge.User
			}
			more = len(page) == 7
		}
		liked := make(map[likes.Item]int)
		for after, more := (likes.Item{}), true; more; {
			page, err := s.LikedBy(t.Context(), likes.Likes, 1, after, 7)
			require.NoError(t, err)
			for _, m := range page {
				liked[m.Edge.Item]++
				after = m.Edge.Item
			}
			more = len(page) == 7
		}
		for n := int64(1); n <= stay; n++ {
			require.Equal(t, 1, seen[likes.UserID(2*n)])
			require.Equal(t, 1, liked[item(100+2*n)])
		}
		require.LessOrEqual(t, seen[31], 1)
		require.LessOrEqual(t, liked[item(131)], 1)
	}
	stop()
	done.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	requireExact(t, s)
}
