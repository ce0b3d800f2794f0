package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/store/postgres"
	containers "likectl/testcontainers"
)

func like(user, id int64) store.Write {
	e := likes.Edge{Counter: likes.Likes, Item: likes.Item{Type: 1, ID: likes.ItemID(id)}, User: likes.UserID(user)}
	return store.Write{Edge: e, Liked: true, Clock: likes.ClockAt(time.Now(), 1), LikedAt: time.Now()}
}

func commit(ctx context.Context, s store.Edges, ws ...store.Write) error {
	return s.Commit(ctx, store.Commit{Writes: ws}, make([]store.Written, len(ws)))
}

// awaitCommit commits until it succeeds, within 20 s.
func awaitCommit(t testing.TB, s store.Edges, w store.Write) {
	t.Helper()
	poll(t, "a commit succeeds again", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return commit(ctx, s, w) == nil
	})
}

func requireExact(t testing.TB, s store.Auditor) {
	t.Helper()
	for after := (store.Key{}); ; {
		a, err := s.Audit(t.Context(), after, 500)
		require.NoError(t, err)
		require.Empty(t, a.Drifts)
		if a.Next == (store.Key{}) {
			return
		}
		after = a.Next
	}
}

// ownServer is a server that may be broken, with a store on it.
func ownServer(t *testing.T) (*containers.Postgres, *postgres.Store) {
	t.Helper()
	server := containers.StartPostgres(t)
	dsn := server.DSN("postgres")
	require.NoError(t, migrate(t.Context(), dsn))
	return server, open(t, dsn)
}

func TestKilledServerKeepsEveryAcknowledgedLike(t *testing.T) {
	const cycles, writers, batch = 3, 4, 20
	server, s := ownServer(t)
	var acknowledged, uncertain int
	for cycle := range cycles {
		var mu sync.Mutex
		var acked []likes.Edge
		var done sync.WaitGroup
		reached := make(chan struct{}, 1)
		for w := range writers {
			done.Go(func() {
				for n := 0; ; n++ {
					ws := make([]store.Write, batch)
					for i := range ws {
						ws[i] = like(int64(cycle*1_000_000_000+w*1_000_000+n*batch+i+1), int64(w%2+1))
					}
					err := commit(t.Context(), s, ws...)
					mu.Lock()
					if err != nil {
						if errors.Is(err, likes.ErrUncertain) {
							uncertain++
						}
						mu.Unlock()
						return
					}
					for _, w := range ws {
						acked = append(acked, w.Edge)
					}
					if len(acked) > 200*batch {
						select {
						case reached <- struct{}{}:
						default:
						}
					}
					mu.Unlock()
				}
			})
		}
		<-reached
		server.Kill(t)
		done.Wait()
		require.ErrorIs(t, commit(t.Context(), s, like(1, 99)), likes.ErrUnavailable, "the server is down, nothing can have been sent")
		server.Start(t)
		awaitCommit(t, s, like(int64(cycle+1), 77))
		for _, e := range acked {
			out := make([]likes.Register, 1)
			require.NoError(t, s.Registers(t.Context(), e.Counter, e.User, []likes.Item{e.Item}, out))
			require.True(t, out[0].Liked, "%v was acknowledged", e)
		}
		requireExact(t, s)
		acknowledged += len(acked)
	}
	t.Logf("%d likes acknowledged, %d batches uncertain over %d kills", acknowledged, uncertain, cycles)
	require.Positive(t, uncertain, "no kill ever met a batch in flight")
}

func TestPausedServerIsUncertainWithinTheDeadline(t *testing.T) {
	server, s := ownServer(t)
	awaitCommit(t, s, like(1, 1))
	server.Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	err := commit(ctx, s, like(2, 1))
	require.ErrorIs(t, err, likes.ErrUncertain)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(began), 2*time.Second)
	ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Counts(ctx, likes.Likes, []likes.Item{{Type: 1, ID: 1}}, make([]store.CountRow, 1)), likes.ErrUnavailable)
	server.Unpause(t)
	awaitCommit(t, s, like(3, 1))
	awaitCommit(t, s, like(2, 1)) // repeating what was uncertain counts once
	row := make([]store.CountRow, 1)
	require.NoError(t, s.Counts(t.Context(), likes.Likes, []likes.Item{{Type: 1, ID: 1}}, row))
	require.Equal(t, int64(3), row[0].N)
	requireExact(t, s)
}

func TestLostAnswersAndClosedPorts(t *testing.T) {
	server := containers.SharedPostgres(t)
	r := newRaw(t, server)
	proxy := containers.NewProxy(t, server.Addr())
	s := open(t, strings.Replace(r.dsn, server.Addr(), proxy.Addr(), 1))
	awaitCommit(t, s, like(1, 1))

	proxy.LoseAnswers(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err := commit(ctx, s, like(2, 1))
	require.ErrorIs(t, err, likes.ErrUncertain)
	poll(t, "the write was applied although its answer was lost", func() bool {
		n, err := r.Int(t.Context(), "select count from counters where item_id = 1")
		require.NoError(t, err)
		return n == 2
	})
	proxy.Clear(t)
	awaitCommit(t, s, like(3, 1))

	proxy.Down(t)
	var down error
	poll(t, "a commit is refused", func() bool {
		down = commit(t.Context(), s, like(4, 1))
		return errors.Is(down, likes.ErrUnavailable)
	})
	for _, err := range []error{err, down} {
		require.NotContains(t, err.Error(), "likectl:likectl", err)
		require.NotContains(t, err.Error(), "postgres:likectl", err)
		require.Contains(t, err.Error(), "postgres 127.0.0.1:")
	}
	n, err := r.Int(t.Context(), "select count(*) from edges where user_id = 4")
	require.NoError(t, err)
	require.Zero(t, n, "unavailable means not applied")
	proxy.Up(t)
	awaitCommit(t, s, like(4, 1))
	requireExact(t, s)
}

// locked holds the lock of an edge until release.
func locked(t *testing.T, r raw, id int64) (holder *pgx.Conn, release func()) {
	t.Helper()
	require.NoError(t, commit(t.Context(), r, like(1, id)))
	holder = connect(t, r.dsn)
	_, err := holder.Exec(t.Context(), fmt.Sprintf("begin; set local deadlock_timeout = '1min'; update edges set was = was where item_id = %d", id))
	require.NoError(t, err)
	return holder, func() {
		_, err := holder.Exec(t.Context(), "commit")
		require.NoError(t, err)
	}
}

func TestStatementTimeoutAppliesNothing(t *testing.T) {
	r := newRaw(t, containers.SharedPostgres(t))
	_, release := locked(t, r, 1)
	c := config(r.dsn)
	c.StatementTimeout = 100 * time.Millisecond
	s, err := postgres.Open(t.Context(), c)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	err = commit(t.Context(), s, like(1, 1), like(1, 2))
	require.ErrorIs(t, err, likes.ErrUnavailable)
	require.ErrorContains(t, err, "57014")
	release()
	n, err := r.Int(t.Context(), "select count(*) from edges where item_id = 2")
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestTerminatedSessionIsUncertain(t *testing.T) {
	r := newRaw(t, containers.SharedPostgres(t))
	_, release := locked(t, r, 1)
	result := make(chan error, 1)
	go func() { result <- commit(t.Context(), r, like(1, 1)) }()
	awaitLocks(t, r, 1)
	require.NoError(t, r.Exec(t.Context(),
		"select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"))
	err := <-result
	require.ErrorIs(t, err, likes.ErrUncertain)
	require.ErrorContains(t, err, "57P01")
	release()
	awaitCommit(t, r, like(1, 1))
}

func TestReadOnlyServerIsUnavailable(t *testing.T) {
	r := newRaw(t, containers.SharedPostgres(t))
	require.NoError(t, r.Exec(t.Context(), "do $$ begin execute format('alter database %I set default_transaction_read_only = on', current_database()); end $$"))
	s := open(t, r.dsn)
	err := commit(t.Context(), s, like(1, 1))
	require.ErrorIs(t, err, likes.ErrUnavailable)
	require.ErrorContains(t, err, "25006")
}

// TestDeadlocksAreRetriedInside plays a writer of another kind that locks edges
// against the order.
func TestDeadlocksAreRetriedInside(t *testing.T) {
	r := newRaw(t, containers.SharedPostgres(t))
	require.NoError(t, commit(t.Context(), r, like(1, 1)))
	holder, release := locked(t, r, 2)
	result := make(chan error, 1)
	go func() { result <- commit(t.Context(), r, like(1, 1), like(1, 2)) }()
	awaitLocks(t, r, 1)
	_, err := holder.Exec(t.Context(), "update edges set was = was where item_id = 1") // waits for the store's deadlock_timeout
	require.NoError(t, err)
	release()
	require.NoError(t, <-result)
	require.NoError(t, holder.Close(t.Context()))
	require.Equal(t, int64(1), deadlocks(t, r))
}
