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

// sums is a store of tallies in its plainest form.
type sums struct {
	events map[store.Add]bool
	counts map[store.Key]int64
}

func newSums() *sums { return &sums{map[store.Add]bool{}, map[store.Key]int64{}} }

// add performs folded adds as the port demands it.
func (s *sums) add(adds []store.Add, out []store.Added) {
	for i, a := range adds {
		a.At = time.Time{}
		out[i].New = !s.events[a]
		s.events[a] = true
		if out[i].New {
			s.counts[a.Key]++
		}
	}
	for i, a := range adds {
		out[i].Count, out[i].Version = s.counts[a.Key], likes.CountVersion{Epoch: 3, N: s.counts[a.Key]}
	}
}

func TestAFoldedBatchOfAddsIsTheSameAsOneByOne(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 999, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		folded, plain := newSums(), newSums()
		var f, single fold.Tally
		for range rapid.IntRange(1, 3).Draw(t, "batches") {
			ms := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) likes.Mutation {
				return likes.Mutation{
					Op: likes.Add,
					Edge: likes.Edge{
						Counter: rapid.SampledFrom([]likes.Counter{likes.Views, likes.Shares}).Draw(t, "counter"),
						Item:    likes.Item{Type: 1, ID: likes.ItemID(rapid.IntRange(1, 2).Draw(t, "item"))},
						User:    likes.UserID(rapid.IntRange(0, 2).Draw(t, "user")),
					},
					Event: likes.EventID{byte(rapid.IntRange(1, 5).Draw(t, "event"))},
					Fixed: likes.Clock(rapid.IntRange(0, 1).Draw(t, "replay")),
				}
			}), 1, 20).Draw(t, "mutations")
			got, want := make([]likes.Result, len(ms)), make([]likes.Result, len(ms))
			adds, added := f.Fold(ms, at), f.Added()
			for i := range adds {
				require.Equal(t, at.Truncate(time.Microsecond), adds[i].At)
				if i > 0 {
					require.Negative(t, adds[i-1].Compare(adds[i]), "not in order, or an event twice")
				}
			}
			folded.add(adds, added)
			f.Results(ms, added, at, got)
			for i := range ms {
				one, alone := single.Fold(ms[i:i+1], at), single.Added()
				plain.add(one, alone)
				single.Results(ms[i:i+1], alone, at, want[i:i+1])
			}
			for i := range ms {
				require.Equal(t, want[i].Outcome, got[i].Outcome, "mutation %d of %v", i, ms)
				require.Equal(t, want[i].Count.N, got[i].Count.N, "mutation %d of %v", i, ms)
				require.Equal(t, ms[i].Edge, got[i].Version.Edge)
				if ms[i].Fixed != 0 {
					require.Zero(t, got[i].Count, "replays carry no count")
				}
			}
		}
		require.Equal(t, plain, folded)
	})
}
