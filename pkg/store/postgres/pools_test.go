package postgres_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/store/postgres"
	containers "likectl/testcontainers"
)

// TestInstancesDoNotDeadlock writes large overlapping batches of both kinds from
// several instances, with repairs between them. Not one deadlock may happen, not
// even one that a retry would hide.
func TestInstancesDoNotDeadlock(t *testing.T) {
	const instances, writers, rounds, most = 3, 6, 60, 150
	r := newRaw(t, containers.SharedPostgres(t))
	var done sync.WaitGroup
	errs := make(chan error, instances*(writers+1)*rounds)
	stores := make([]*postgres.Store, instances)
	for instance := range instances {
		s := open(t, r.dsn)
		stores[instance] = s
		for writer := range writers {
			done.Go(func() {
				random := rand.New(rand.NewPCG(uint64(instance), uint64(writer)))
				for range rounds {
					// Odd writers share no user, so that they meet at the counters only.
					users := int64(writer%2) * int64(100*(1+instance*writers+writer))
					c := store.Commit{Replay: writer == 0, Writes: randomWrites(random, users, most)}
					errs <- s.Commit(t.Context(), c, make([]store.Written, len(c.Writes)))
				}
			})
		}
		done.Go(func() {
			for n := range rounds {
				_, err := s.Repair(t.Context(), store.Key{Counter: likes.Likes, Item: likes.Item{Type: 1, ID: likes.ItemID(n%12 + 1)}})
				errs <- err
			}
		})
	}
	done.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	requireExact(t, r)
	require.Zero(t, deadlocks(t, r, stores...))
}

// randomWrites returns sorted writes over the 20 users after the given one and
// 12 items.
func randomWrites(random *rand.Rand, after int64, most int) []store.Write {
	writes := make(map[likes.Edge]store.Write)
	for range most {
		w := like(after+1+random.Int64N(20), 1+random.Int64N(12))
		w.Liked = random.IntN(2) == 0
		writes[w.Edge] = w
	}
	ws := make([]store.Write, 0, len(writes))
	for _, w := range writes {
		ws = append(ws, w)
	}
	slices.SortFunc(ws, func(a, b store.Write) int { return a.Edge.Compare(b.Edge) })
	return ws
}

// deadlocks returns the number of deadlocks in this database. It ends the stores
// first: sessions report what they saw at the latest when they end.
func deadlocks(t *testing.T, r raw, stores ...*postgres.Store) (n int64) {
	t.Helper()
	for _, s := range append(stores, r.Store) {
		require.NoError(t, s.Close())
	}
	poll(t, "the stores' sessions have ended", func() bool {
		n, err := r.Int(t.Context(), `select count(*) from pg_stat_activity
			where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()`)
		require.NoError(t, err)
		return n == 0
	})
	n, err := r.Int(t.Context(), "select deadlocks from pg_stat_database where datname = current_database()")
	require.NoError(t, err)
	t.Logf("%d deadlocks", n)
	return n
}

// TestWritesOutOfOrderAreRefused: they could deadlock, and a repeated edge is
// more than one statement can do.
func TestWritesOutOfOrderAreRefused(t *testing.T) {
	r := newRaw(t, containers.SharedPostgres(t))
	for name, ws := range map[string][]store.Write{
		"out of order": {like(1, 2), like(1, 1)},
		"twice":        {like(1, 1), like(1, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, commit(t.Context(), r, ws...), likes.ErrInvalid)
		})
	}
	n, err := r.Int(t.Context(), "select count(*) from edges")
	require.NoError(t, err)
	require.Zero(t, n)
}

// TestReadsLeaveConnectionsToWrites: audits and repairs that hang, and reads
// behind them, keep neither a commit nor the sign of life waiting.
func TestReadsLeaveConnectionsToWrites(t *testing.T) {
	const each = 25
	r := newRaw(t, containers.SharedPostgres(t))
	c := config(r.dsn)
	c.MaxConns, c.Writers = 3, 1
	s, err := postgres.Open(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	key := store.Key{Counter: likes.Likes, Item: likes.Item{Type: 1, ID: 1}}
	tx, err := connect(t, r.dsn).Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "select pg_advisory_xact_lock(hashtextextended('likectl repair 1/1/1', 0))")
	require.NoError(t, err)
	var done sync.WaitGroup
	errs := make(chan error, 2*each)
	for range each {
		done.Go(func() {
			_, err := s.Repair(t.Context(), key)
			errs <- err
		})
	}
	awaitLocks(t, r, c.MaxConns-c.Writers)
	for range each {
		done.Go(func() {
			errs <- s.Counts(t.Context(), key.Counter, []likes.Item{key.Item}, make([]store.CountRow, 1))
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = s.Now(ctx)
	require.NoError(t, err)
	require.NoError(t, commit(ctx, s, like(1, 1)))
	require.NoError(t, tx.Rollback(t.Context()))
	done.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err, "reads that waited are answered in the end")
	}
}
