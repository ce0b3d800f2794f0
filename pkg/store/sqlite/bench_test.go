package sqlite_test

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/store/sqlite"
)

// BenchmarkCommit measures durable batches; ns/op is per batch.
func BenchmarkCommit(b *testing.B) {
	const items, users = 1_000_000, 10_000_000
	for _, c := range []struct {
		name string
		size int
		pick func(*rand.Rand) likes.ItemID
	}{
		{"hot/256", 256, func(*rand.Rand) likes.ItemID { return 1 }},
		{"zipf/256", 256, zipf(items)},
		{"uniform/256", 256, func(r *rand.Rand) likes.ItemID { return likes.ItemID(1 + r.Int64N(items)) }},
		{"zipf/1", 1, zipf(items)},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "likes.db"))
			if err != nil {
				b.Fatal(err)
			}
			r := rand.New(rand.NewPCG(1, 2))
			out := make([]store.Written, c.size)
			writes := 0
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				batch := make([]store.Write, 0, c.size)
				for range c.size {
					batch = append(batch, like(likes.UserID(1+r.Int64N(users)), c.pick(r)))
				}
				batch = unique(batch)
				writes += len(batch)
				b.StartTimer()
				if err := s.Commit(b.Context(), store.Commit{Writes: batch}, out); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(writes)/b.Elapsed().Seconds(), "writes/s")
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// zipf picks items as popularity does: s = 1.1.
func zipf(items uint64) func(*rand.Rand) likes.ItemID {
	var z *rand.Zipf
	return func(r *rand.Rand) likes.ItemID {
		if z == nil {
			z = rand.NewZipf(r, 1.1, 1, items-1)
		}
		return likes.ItemID(1 + z.Uint64())
	}
}

// unique sorts writes as a commit wants them and drops repeated edges.
func unique(ws []store.Write) []store.Write {
	slices.SortFunc(ws, func(a, b store.Write) int { return a.Edge.Compare(b.Edge) })
	return slices.CompactFunc(ws, func(a, b store.Write) bool { return a.Edge == b.Edge })
}
