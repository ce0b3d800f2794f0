package fold_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"likectl/pkg/fold"
	"likectl/pkg/likes"
	"likectl/pkg/store"
)

// table is a store in its plainest form: registers and counters.
type table struct {
	registers map[likes.Edge]likes.Register
	counts    map[store.Key]int64
	versions  map[store.Key]int64
}

func newTable() *table {
	return &table{map[likes.Edge]likes.Register{}, map[store.Key]int64{}, map[store.Key]int64{}}
}

// erased is the user of whom nothing is applied.
const erased likes.UserID = 4

// commit performs folded writes as the ports of pkg/store demand it.
func (t *table) commit(replay bool, writes []store.Write, out []store.Written) {
	touched := map[store.Key]int64{}
	for i, w := range writes {
		if w.Edge.User == erased {
			out[i] = store.Written{Erased: true}
			continue
		}
		old := t.registers[w.Edge]
		r, applied := w.Over(old, replay)
		t.registers[w.Edge] = r
		out[i] = store.Written{Applied: applied, Was: old.Liked, Clock: r.Clock}
		if !applied {
			continue
		}
		touched[store.Key{Counter: w.Edge.Counter, Item: w.Edge.Item}] += value(w.Liked) - value(old.Liked)
	}
	for k, d := range touched {
		if d != 0 {
			t.counts[k] += d
			t.versions[k]++
		}
	}
	for i, w := range writes {
		k := store.Key{Counter: w.Edge.Counter, Item: w.Edge.Item}
		if !replay && out[i].Applied {
			out[i].Count, out[i].Version = t.counts[k], likes.CountVersion{Epoch: 3, N: t.versions[k]}
		}
	}
}

func value(liked bool) int64 {
	if liked {
		return 1
	}
	return 0
}

func drawMutations(t *rapid.T, replay bool) []likes.Mutation {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) likes.Mutation {
		m := likes.Mutation{
			Op: rapid.SampledFrom([]likes.Op{likes.Set, likes.Clear}).Draw(t, "op"),
			Edge: likes.Edge{
				Counter: rapid.SampledFrom([]likes.Counter{likes.Likes, likes.Saves}).Draw(t, "counter"),
				Item:    likes.Item{Type: 1, ID: likes.ItemID(rapid.IntRange(1, 3).Draw(t, "item"))},
				User:    likes.UserID(rapid.IntRange(1, 4).Draw(t, "user")),
			},
		}
		if replay {
			m.Fixed = likes.Clock(rapid.IntRange(1, 6).Draw(t, "clock")) << 12
		}
		return m
	}), 1, 30).Draw(t, "mutations")
}

// counting returns a clock that goes up by one microsecond per call.
func counting(from likes.Clock) func() likes.Clock {
	return func() likes.Clock {
		from = from.Next()
		return from
	}
}

func TestAFoldedBatchOfIssuesIsTheSameAsOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		folded, plain := newTable(), newTable()
		var f, single fold.Folder
		clock := likes.ClockAt(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 5)
		for range rapid.IntRange(1, 3).Draw(t, "batches") {
			ms := drawMutations(t, false)
			got, want := make([]likes.Result, len(ms)), make([]likes.Result, len(ms))

			writes := f.Issue(ms, counting(clock))
			for i := 1; i < len(writes); i++ {
				require.Negative(t, writes[i-1].Edge.Compare(writes[i].Edge), "not in key order, or an edge twice")
			}
			written := f.Written()
			folded.commit(false, writes, written)
			f.Issued(ms, written, time.Time{}, got)

			for i := range ms {
				one := ms[i : i+1]
				w := single.Issue(one, counting(clock))
				plain.commit(false, w, single.Written())
				want[i].Count.N = plain.counts[store.Key{Counter: ms[i].Edge.Counter, Item: ms[i].Edge.Item}]
			}
			for i := range ms {
				if ms[i].Edge.User == erased {
					require.ErrorIs(t, got[i].Err, likes.ErrErased)
					require.Equal(t, likes.Result{Err: got[i].Err}, got[i])
					continue
				}
				require.Equal(t, want[i].Count.N, got[i].Count.N, "count of mutation %d of %v", i, ms)
			}
			clock += 1 << 20
		}
		for k, n := range plain.counts { // one that went up and down has no row when folded
			require.Equal(t, n, folded.counts[k])
		}
		for e, r := range plain.registers {
			require.Equal(t, r.Liked, folded.registers[e].Liked, "%v", e)
		}
	})
}

func TestOutcomesOfAFoldedBatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab := newTable()
		model := map[likes.Edge]bool{}
		var f fold.Folder
		for range rapid.IntRange(1, 3).Draw(t, "batches") {
			ms := drawMutations(t, false)
			out := make([]likes.Result, len(ms))
			writes, written := f.Issue(ms, counting(1<<40)), f.Written()
			tab.commit(false, writes, written)
			f.Issued(ms, written, time.Time{}, out)
			for i, m := range ms {
				if m.Edge.User == erased {
					continue
				}
				want := likes.Unchanged
				if model[m.Edge] != (m.Op == likes.Set) {
					want = likes.Changed
				}
				model[m.Edge] = m.Op == likes.Set
				require.Equal(t, want, out[i].Outcome, "mutation %d of %v", i, ms)
				require.Equal(t, tab.registers[m.Edge].Clock, out[i].Version.Clock)
				require.Equal(t, likes.Epoch(3), out[i].Version.Epoch)
			}
		}
	})
}

func TestAFoldedBatchOfReplaysEndsAsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := drawMutations(t, true)
		for i := range ms { // a register's own time goes with its clock
			ms[i].LikedAt = ms[i].Fixed.Time()
		}
		folded, plain := newTable(), newTable()
		var f fold.Folder
		writes, written := f.Replay(ms), f.Written()
		folded.commit(true, writes, written)
		out := make([]likes.Result, len(ms))
		f.Replayed(ms, written, out)

		for _, i := range rapid.Permutation(order(len(ms))).Draw(t, "order") {
			one := []store.Write{{Edge: ms[i].Edge, Liked: ms[i].Op == likes.Set, Clock: ms[i].Fixed, LikedAt: ms[i].LikedAt}}
			plain.commit(true, one, make([]store.Written, 1))
			if ms[i].Edge.User == erased {
				require.Equal(t, likes.Superseded, out[i].Outcome)
			}
		}
		require.Equal(t, plain.registers, folded.registers)
		for k, n := range plain.counts {
			require.Equal(t, n, folded.counts[k])
		}
		changed := map[likes.Edge]int{}
		for i, r := range out {
			if r.Outcome == likes.Changed {
				changed[ms[i].Edge]++
			}
		}
		for e, r := range folded.registers {
			require.Equal(t, int(value(r.Liked)), changed[e], "%v", e)
		}
	})
}

func order(n int) []int {
	o := make([]int, n)
	for i := range o {
		o[i] = i
	}
	return o
}

func TestAnIssueIsLaterThanTheTokenOfItsClient(t *testing.T) {
	var f fold.Folder
	after := likes.ClockAt(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), 9)
	e := likes.Edge{Counter: likes.Likes, Item: likes.Item{Type: 1, ID: 1}, User: 1}
	w := f.Issue([]likes.Mutation{{Op: likes.Set, Edge: e, After: after}, {Op: likes.Clear, Edge: e}}, counting(1<<40))
	require.Equal(t, after.Next(), w[0].Clock)
}

func TestALikeTakenBackAndGivenAgainInOneBatchBeginsAnew(t *testing.T) {
	var f fold.Folder
	e := likes.Edge{Counter: likes.Likes, Item: likes.Item{Type: 1, ID: 1}, User: 1}
	set, unset := likes.Mutation{Op: likes.Set, Edge: e}, likes.Mutation{Op: likes.Clear, Edge: e}
	require.True(t, f.Issue([]likes.Mutation{unset, set}, counting(1<<40))[0].Restarted)
	require.False(t, f.Issue([]likes.Mutation{set, set}, counting(1<<40))[0].Restarted)
}

func BenchmarkFold(b *testing.B) {
	for name, items := range map[string]int{"hot": 1, "spread": 1 << 20} {
		b.Run(name, func(b *testing.B) {
			ms := make([]likes.Mutation, 256)
			for i := range ms {
				ms[i] = likes.Mutation{Op: likes.Set, Edge: likes.Edge{
					Counter: likes.Likes, Item: likes.Item{Type: 1, ID: likes.ItemID(i*7919%items + 1)}, User: likes.UserID(i*104729%99991 + 1),
				}}
			}
			var f fold.Folder
			out := make([]likes.Result, len(ms))
			clock := counting(1 << 40)
			b.ReportAllocs()
			for b.Loop() {
				f.Issue(ms, clock)
				f.Issued(ms, f.Written(), time.Time{}, out)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(ms)), "ns/like")
		})
	}
}
