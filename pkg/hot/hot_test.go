package hot_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/hot"
	"likectl/pkg/likes"
	"likectl/pkg/store"
)

func key(id int64) store.Key {
	return store.Key{Counter: likes.Likes, Item: likes.Item{Type: 1, ID: likes.ItemID(id)}}
}

// batch returns writes on items, in key order as batches are.
func batch(ids ...int64) ([]store.Write, []store.Written) {
	slices.Sort(ids)
	ws, done := make([]store.Write, len(ids)), make([]store.Written, len(ids))
	for i, id := range ids {
		k := key(id)
		ws[i].Edge = likes.Edge{Counter: k.Counter, Item: k.Item, User: likes.UserID(i + 1)}
		done[i].Applied = true
	}
	return ws, done
}

func tracker(t testing.TB, lanes int) *hot.Tracker {
	t.Helper()
	tr, err := hot.New(lanes)
	require.NoError(t, err)
	return tr
}

func wrote(tr *hot.Tracker, lane int, ids ...int64) {
	ws, done := batch(ids...)
	tr.Wrote(lane, ws, done)
}

// times repeats an id.
func times(n int, id int64) []int64 { return slices.Repeat([]int64{id}, n) }

func TestRatesAreThoseOfTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := tracker(t, 2)
		for range 20 {
			wrote(tr, 0, slices.Concat(times(30, 7), times(5, 8))...)
			wrote(tr, 1, times(10, 9)...)
			time.Sleep(time.Second)
		}
		want := []hot.Rate{{Key: key(7), PerSecond: 30}, {Key: key(9), PerSecond: 10}, {Key: key(8), PerSecond: 5}}
		require.Equal(t, want, tr.Top(10, hot.Minute))
		require.Equal(t, want[:2], tr.Top(2, hot.Minute))
		require.Equal(t, 2, tr.Above(9.9, hot.Minute))
		require.Equal(t, 1, tr.Above(10, hot.Minute), "above, not at it")
	})
}

func TestWhatIsOverIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := tracker(t, 1)
		wrote(tr, 0, times(600, 7)...)
		time.Sleep(30 * time.Second)
		require.Empty(t, tr.Top(10, hot.Sudden))
		require.Equal(t, []hot.Rate{{Key: key(7), PerSecond: 20}}, tr.Top(10, hot.Minute))
		wrote(tr, 0, times(600, 8)...)
		require.Equal(t, []hot.Rate{{Key: key(8), PerSecond: 60}}, tr.Top(10, hot.Sudden))
		time.Sleep(35 * time.Second) // more than a minute after the first
		require.Equal(t, []hot.Rate{{Key: key(8), PerSecond: 10}}, tr.Top(10, hot.Minute))
		// A pause of exactly as many slices as are kept.
		wrote(tr, 0, times(600, 9)...)
		time.Sleep(65 * time.Second)
		wrote(tr, 0, 10)
		require.Len(t, tr.Top(10, hot.Minute), 1)
		time.Sleep(time.Hour)
		require.Empty(t, tr.Top(10, hot.Minute))
	})
}

func TestWhatWasNotAppliedIsNoWrite(t *testing.T) {
	tr := tracker(t, 1)
	ws, done := batch(5, 6, 6)
	done[0].Applied, done[2].Applied = false, false
	tr.Wrote(0, ws, done)
	top := tr.Top(10, hot.Minute)
	require.Len(t, top, 1)
	require.Equal(t, key(6), top[0].Key)
	require.InDelta(t, 1, top[0].PerSecond, 1e-9, "a second at least")
}

// TestBoundsHold compares a tracker with exact counts on streams that do not fit
// into it: every bound that it gives is true, and it misses no key that it must
// not.
func TestBoundsHold(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			const lanes, perSecond, keys = 2, 4000, 20_000
			random := rand.New(rand.NewPCG(seed, 1))
			zipf := rand.NewZipf(random, 1.05+float64(seed)/10, 3, keys-1)
			tr := tracker(t, lanes)
			exact := make([]map[store.Key]float64, 60)
			for second := range exact {
				exact[second] = map[store.Key]float64{}
				byLane := make([][]int64, lanes)
				for range perSecond {
					id := int64(zipf.Uint64()) + 1
					byLane[id%lanes] = append(byLane[id%lanes], id)
					exact[second][key(id)]++
				}
				for lane, ids := range byLane {
					for part := range slices.Chunk(ids, 512) {
						wrote(tr, lane, part...)
					}
				}
				time.Sleep(time.Second)
			}
			for window, seconds := range map[time.Duration]int{hot.Minute: 60, hot.Sudden: 10} {
				truth := map[store.Key]float64{}
				for _, counts := range exact[60-seconds:] {
					for k, n := range counts {
						truth[k] += n / float64(seconds)
					}
				}
				checkBounds(t, tr.Top(1<<20, window), truth, float64(perSecond))
			}
		})
	}
}

func checkBounds(t *testing.T, top []hot.Rate, truth map[store.Key]float64, all float64) {
	t.Helper()
	const epsilon = 1e-6
	seen := map[store.Key]bool{}
	for _, r := range top {
		require.False(t, seen[r.Key], "listed twice")
		seen[r.Key] = true
		require.LessOrEqual(t, truth[r.Key], r.PerSecond+epsilon)
		require.GreaterOrEqual(t, truth[r.Key], r.AtLeast()-epsilon)
		// A lane has 512 counters for its share of the writes.
		require.LessOrEqual(t, r.Error, all/512)
	}
	for k, rate := range truth {
		if rate > all/512 {
			require.True(t, seen[k], "%v at %v a second is missing", k, rate)
		}
	}
	require.True(t, slices.IsSortedFunc(top, func(a, b hot.Rate) int {
		if a.AtLeast() > b.AtLeast() {
			return -1
		}
		return 1
	}))
}

func TestWritersAndReadersTogether(t *testing.T) {
	const lanes = 4
	tr := tracker(t, lanes)
	var wg sync.WaitGroup
	for lane := range lanes {
		wg.Go(func() {
			for n := range int64(2000) {
				wrote(tr, lane, int64(lane)+1, 1000+n*lanes+int64(lane))
			}
		})
	}
	for range 100 {
		tr.Top(10, hot.Minute)
	}
	wg.Wait()
	for i, r := range tr.Top(lanes, hot.Minute) {
		require.Less(t, int64(r.Item.ID), int64(lanes+1), "place %d", i)
	}
}

func TestNoLanesAreRejected(t *testing.T) {
	_, err := hot.New(0)
	require.ErrorIs(t, err, likes.ErrInvalid)
}

// BenchmarkWrote is what one write costs, in batches of 512.
func BenchmarkWrote(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.2, 3, 1<<20)
	for name, id := range map[string]func() int64{
		"one item":  func() int64 { return 1 },
		"zipf":      func() int64 { return int64(zipf.Uint64()) + 1 },
		"all items": func() int64 { return 1 + random.Int64N(1<<40) },
	} {
		b.Run(name, func(b *testing.B) {
			tr := tracker(b, 2)
			const size = 512
			var batches [16][]store.Write
			done := make([]store.Written, size)
			for i := range batches {
				ids := make([]int64, size)
				for j := range ids {
					ids[j] = id()
				}
				batches[i], done = batch(ids...)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += size {
				tr.Wrote(0, batches[n/size%len(batches)], done)
			}
		})
	}
}

func BenchmarkTop(b *testing.B) {
	tr := tracker(b, 2)
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		ids := make([]int64, 512)
		for j := range ids {
			ids[j] = 1 + random.Int64N(1<<40)
		}
		wrote(tr, 0, ids...)
	}
	b.ReportAllocs()
	for b.Loop() {
		tr.Top(10, hot.Minute)
	}
}
