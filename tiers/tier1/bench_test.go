package tier1_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/batch"
	"likectl/pkg/clock"
	"likectl/pkg/likes"
	"likectl/pkg/store/postgres"
	"likectl/pkg/store/sqlite"
	containers "likectl/testcontainers"
	"likectl/tiers"
	"likectl/tiers/tier1"
)

// BenchmarkApply measures single likes by concurrent callers at the service
// interface, every one durable when it is answered.
func BenchmarkApply(b *testing.B) {
	b.Run("postgres", func(b *testing.B) {
		server := containers.SharedPostgres(b)
		dsn := server.MigratedDatabase(b, "likectl_schema", migrate)
		db, err := postgres.Open(b.Context(), postgres.Config{DSN: dsn, MaxConns: 6, StatementTimeout: 10 * time.Second})
		require.NoError(b, err)
		defer func() { require.NoError(b, db.Close()) }()
		benchApply(b, db, tiers.Postgres)
	})
	b.Run("sqlite", func(b *testing.B) {
		db, err := sqlite.Open(b.Context(), b.TempDir()+"/likes.db")
		require.NoError(b, err)
		defer func() { require.NoError(b, db.Close()) }()
		benchApply(b, db, tiers.SQLite)
	})
}

func benchApply(b *testing.B, edges tier1.Store, engine tiers.Engine) {
	var transactions, operations atomic.Int64
	lane := batch.Config{Lanes: 2, MaxBatch: 512, MaxQueue: 1 << 16, FlushTimeout: time.Minute}
	s, err := tier1.Start(edges, clock.New(1), tiers.Contract(engine), tier1.Config{Issue: lane, Replay: lane, Tally: lane, Retention: time.Hour}, tier1.Hooks{
		Flushed: func(_ string, n int, _ time.Duration, _ error) { transactions.Add(1); operations.Add(int64(n)) },
	})
	require.NoError(b, err)
	defer func() { require.NoError(b, s.Close(b.Context())) }()
	var base atomic.Int64 // so that no run likes what another has liked
	for _, items := range []uint64{1, 1_000_000} {
		for _, callers := range []int{1, 256, 1024} {
			b.Run(fmt.Sprintf("items=%d/callers=%d", items, callers), func(b *testing.B) {
				transactions.Store(0)
				operations.Store(0)
				user := base.Add(1) << 40
				b.SetParallelism(max(callers/2, 1)) // times GOMAXPROCS, 2 where results are kept
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						m := likes.Mutation{Op: likes.Set, Edge: likes.Edge{
							Counter: likes.Likes, User: likes.UserID(atomic.AddInt64(&user, 1)),
							Item: likes.Item{Type: 1, ID: likes.ItemID(1 + rand.Uint64N(items))},
						}}
						if r := s.Apply(b.Context(), []likes.Mutation{m}); r[0].Err != nil {
							b.Error(r[0].Err)
							return
						}
					}
				})
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "likes/s")
				b.ReportMetric(float64(operations.Load())/float64(max(transactions.Load(), 1)), "likes/commit")
			})
		}
	}
}
