package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/store/postgres"
	containers "likectl/testcontainers"
)

// BenchmarkCommit writes batches of new likes with two lanes, as tier 1 does:
// all of one item (hot) or spread over a million (uniform); repeated is hot with
// likes that are there already, whose count has to be read apart. An iteration
// is one batch. It prints likes/s, and flushes and bytes of WAL per like.
func BenchmarkCommit(b *testing.B) {
	server := containers.SharedPostgres(b)
	for _, mix := range []string{"hot", "uniform", "repeated"} {
		for _, size := range []int{1, 16, 128, 512, 1024} {
			b.Run(fmt.Sprintf("%s/%d", mix, size), func(b *testing.B) { benchmarkCommit(b, server, mix, size) })
		}
	}
}

func benchmarkCommit(b *testing.B, server *containers.Postgres, mix string, size int) {
	const lanes = 2
	dsn := server.MigratedDatabase(b, "likectl_schema", migrate)
	s, err := postgres.Open(b.Context(), config(dsn))
	require.NoError(b, err)
	const known = 50_000 // likes there are before, for repeated
	if mix == "repeated" {
		for first := int64(1); first <= known; first += 1000 {
			ws := make([]store.Write, 1000)
			for i := range ws {
				ws[i] = like(first+int64(i), 1)
			}
			require.NoError(b, commit(b.Context(), s, ws...))
		}
	}
	var users atomic.Int64
	fill := func(random *rand.Rand, ws []store.Write) {
		first := users.Add(int64(size)) - int64(size)
		again := random.Int64N(known)
		for i := range ws {
			switch mix {
			case "hot":
				ws[i] = like(first+int64(i)+1, 1)
			case "uniform":
				ws[i] = like(first+int64(i)+1, 1+random.Int64N(1_000_000))
			default:
				ws[i] = like(1+(again+int64(i)*7919)%known, 1)
			}
		}
		slices.SortFunc(ws, func(a, b store.Write) int { return a.Edge.Compare(b.Edge) })
	}
	before := server.WALStats(b)
	b.ReportAllocs()
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	var done sync.WaitGroup
	errs := make([]error, lanes)
	for lane := range lanes {
		done.Go(func() {
			random := rand.New(rand.NewPCG(uint64(lane), 9))
			ws, out := make([]store.Write, size), make([]store.Written, size)
			for left.Add(-1) >= 0 && errs[lane] == nil {
				fill(random, ws)
				errs[lane] = s.Commit(b.Context(), store.Commit{Writes: ws}, out)
			}
		})
	}
	done.Wait()
	b.StopTimer()
	for _, err := range errs {
		require.NoError(b, err)
	}
	n := float64(b.N * size)
	b.ReportMetric(n/b.Elapsed().Seconds(), "likes/s")
	requireExact(b, s)
	require.NoError(b, s.Close()) // its sessions report what they wrote
	var after containers.WALStats
	poll(b, "the sessions have reported", func() bool {
		last := after
		after = server.WALStats(b)
		return after.Syncs > before.Syncs && after == last
	})
	b.ReportMetric(float64(after.Syncs-before.Syncs)/n, "fsyncs/like")
	b.ReportMetric(float64(after.Bytes-before.Bytes)/n, "walB/like")
}

// BenchmarkReads reads 50 counts or registers at once, the size of a page.
func BenchmarkReads(b *testing.B) {
	const items, asked = 20_000, 50
	r := newRaw(b, containers.SharedPostgres(b))
	for first := int64(1); first <= items; first += 1000 {
		ws := make([]store.Write, 1000)
		for i := range ws {
			ws[i] = like(1, first+int64(i))
		}
		require.NoError(b, commit(b.Context(), r, ws...))
	}
	page := make([]likes.Item, asked)
	for i := range page {
		page[i] = likes.Item{Type: 1, ID: likes.ItemID(1 + i*397)}
	}
	b.Run("counts", func(b *testing.B) {
		b.ReportAllocs()
		out := make([]store.CountRow, asked)
		for b.Loop() {
			require.NoError(b, r.Counts(b.Context(), likes.Likes, page, out))
		}
	})
	b.Run("registers", func(b *testing.B) {
		b.ReportAllocs()
		out := make([]likes.Register, asked)
		for b.Loop() {
			require.NoError(b, r.Registers(b.Context(), likes.Likes, 1, page, out))
		}
	})
}
