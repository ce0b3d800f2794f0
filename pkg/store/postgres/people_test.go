package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/store/postgres"
	"likectl/pkg/store/storetest"
	containers "likectl/testcontainers"
)

// TestPeople runs over two instances of one database. Of all that happens at the
// same time nothing deadlocks, not even where it would be tried again.
func TestPeople(t *testing.T) {
	server := containers.SharedPostgres(t)
	storetest.RunPeople(t, func(tb testing.TB) []storetest.PeopleStore {
		r := newRaw(tb, server)
		other := open(tb, r.dsn)
		tb.Cleanup(func() {
			require.NoError(tb, r.Close()) // sessions report deadlocks when they end at the latest
			require.NoError(tb, other.Close())
			poll(tb, "the stores' sessions have ended", func() bool { return intNow(tb, r, sessionsSQL) == 0 })
			require.Zero(tb, intNow(tb, r, "select deadlocks from pg_stat_database where datname = current_database()"), "deadlocks")
		})
		return []storetest.PeopleStore{r, other}
	})
}

const sessionsSQL = `select count(*) from pg_stat_activity
	where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()`

// intNow asks while a test cleans up, when its context has ended.
func intNow(tb testing.TB, r raw, query string) int64 {
	tb.Helper()
	n, err := r.Int(context.Background(), query)
	require.NoError(tb, err)
	return n
}

// held is a transaction that has liked an edge of user 7 and is kept open, as one
// whose client stands still, and a like of the same edge through the store that
// waits for it: both began before the erasure.
type held struct {
	raw
	tx    pgx.Tx
	liked chan error
}

func hold(t *testing.T) held {
	t.Helper()
	r := newRaw(t, containers.SharedPostgres(t))
	tx, err := connect(t, r.dsn).Begin(t.Context())
	require.NoError(t, err)
	_, err = issueRaw(t.Context(), tx, postgres.IssueSQL, []likes.Edge{testEdge(0, 0)})
	require.NoError(t, err)
	h := held{raw: r, tx: tx, liked: make(chan error, 1)}
	go func() {
		_, err := byStore(r)(t.Context(), testEdge(0, 0))
		h.liked <- err
	}()
	awaitLocks(t, r, 1)
	return h
}

// TestBeginEraseWaitsForWritesUnderWay ends the transaction that holds the others
// back only once the erasure waits for them.
func TestBeginEraseWaitsForWritesUnderWay(t *testing.T) {
	for name, end := range map[string]func(pgx.Tx, context.Context) error{"commit": pgx.Tx.Commit, "rollback": pgx.Tx.Rollback} {
		t.Run(name, func(t *testing.T) {
			h := hold(t)
			eraser := open(t, h.dsn)
			begun := make(chan error, 1)
			go func() { begun <- eraser.BeginErase(t.Context(), []likes.UserID{7}, 0) }()
			poll(t, "the erasure waits, or does not", func() bool {
				looking, err := h.Int(t.Context(), "select count(*) from pg_stat_activity where datname = current_database() "+
					"and pid <> pg_backend_pid() and query like '%distinct virtualtransaction%'")
				require.NoError(t, err)
				return looking > 0 || len(begun) > 0
			})
			require.Empty(t, begun, "writes were still under way")
			_, there, err := h.Erasure(t.Context(), 7)
			require.NoError(t, err)
			require.True(t, there)
			refused := issue1(t, h.Store, testEdge(0, 1))
			require.True(t, refused.Erased, "who begins now sees the erasure")
			require.NoError(t, end(h.tx, t.Context()))
			require.NoError(t, <-begun)
			require.NoError(t, <-h.liked)
			rest, err := h.Remains(t.Context(), 7)
			require.NoError(t, err)
			require.EqualValues(t, 1, rest.Edges, "it began before")
			finish(t, eraser)
			requireNothing(t, h.raw)
		})
	}
}

// TestNoEraseFinishesBeforeWritesUnderWay: who began the erasure gave up waiting,
// and whoever goes on with it waits too.
func TestNoEraseFinishesBeforeWritesUnderWay(t *testing.T) {
	h := hold(t)
	eraser := open(t, h.dsn)
	impatient, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err := eraser.BeginErase(impatient, []likes.UserID{7}, 0)
	require.ErrorIs(t, err, likes.ErrUnavailable)
	require.ErrorContains(t, err, "the erasure is recorded, but 2 transactions")
	impatient, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = eraser.StepErase(impatient, 7, 10)
	require.ErrorIs(t, err, likes.ErrUnavailable)
	e, _, err := h.Erasure(t.Context(), 7)
	require.NoError(t, err)
	require.Zero(t, e.Finished)
	require.NoError(t, h.tx.Commit(t.Context()))
	require.NoError(t, <-h.liked)
	require.EqualValues(t, 1, finish(t, eraser).Edges)
	requireNothing(t, h.raw)
}

// TestReadersDoNotHoldUpAnErasure: an audit or a dump may take for hours.
func TestReadersDoNotHoldUpAnErasure(t *testing.T) {
	r := newRaw(t, containers.SharedPostgres(t))
	issue1(t, r.Store, testEdge(0, 0))
	reader, err := connect(t, r.dsn).BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	_, err = reader.Exec(t.Context(), "select count(*) from edges")
	require.NoError(t, err)
	soon, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	require.NoError(t, r.BeginErase(soon, []likes.UserID{7}, 0))
	finish(t, r.Store)
	requireNothing(t, r)
	require.NoError(t, reader.Commit(t.Context()))
}

// TestErasuresAreLookedUpByHash plans the statements as sessions of the store do,
// beside many erasures.
func TestErasuresAreLookedUpByHash(t *testing.T) {
	r := newRaw(t, containers.SharedPostgres(t))
	require.NoError(t, r.Exec(t.Context(), `insert into erasures (user_hash, begun_at, finished_at, merged)
		select md5(n::text)::uuid, now(), now(), false from generate_series(1, 100000) n`))
	require.NoError(t, r.Exec(t.Context(), "analyze erasures"))
	_, err := r.conn.PgConn().Exec(t.Context(), postgres.SessionSQL(time.Minute)).ReadAll()
	require.NoError(t, err)
	const arrays = "'{1}', '{1}', '{1}', '{1}', '{4096}', '{2026-01-01}', '{t}', array[md5('5')::uuid]"
	for name, c := range map[string]struct{ sql, args string }{
		"issue":  {postgres.IssueSQL, arrays + ", '{}', '2100-01-01'"},
		"replay": {postgres.ReplaySQL, arrays},
	} {
		require.NoError(t, r.Exec(t.Context(), fmt.Sprintf("prepare %s as %s", name, c.sql)))
		rows, err := r.conn.Query(t.Context(), fmt.Sprintf("explain (analyze, costs off, timing off) execute %s(%s)", name, c.args),
			pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		plan := strings.Join(lines, "\n")
		require.Contains(t, plan, "Index Scan using erasures_by_hash on erasures (actual rows=1", plan)
		require.NotContains(t, plan, "Seq Scan on erasures", plan)
		require.Contains(t, plan, "Insert on edges e (actual rows=0", plan)
	}
}

// issue1 likes one edge.
func issue1(t *testing.T, s *postgres.Store, e likes.Edge) store.Written {
	t.Helper()
	out := make([]store.Written, 1)
	w := store.Write{Edge: e, Liked: true, Clock: 1 << 20, LikedAt: time.Now()}
	require.NoError(t, s.Commit(t.Context(), store.Commit{Writes: []store.Write{w}}, out))
	return out[0]
}

// finish erases user 7.
func finish(t *testing.T, s *postgres.Store) store.Erasure {
	t.Helper()
	for {
		e, err := s.StepErase(t.Context(), 7, 10)
		require.NoError(t, err)
		if !e.Finished.IsZero() {
			return e
		}
	}
}

// requireNothing wants no trace of user 7, the only one.
func requireNothing(t *testing.T, r raw) {
	t.Helper()
	for _, query := range []string{"select count(*) from edges", "select sum(count)::bigint from counters", "select count(*) from erasures where user_id <> 0"} {
		n, err := r.Int(t.Context(), query)
		require.NoError(t, err)
		require.Zero(t, n, query)
	}
	requireExact(t, r)
}

// TestStepsLockAsWritersDo makes a batch and a step meet at rows of items 1 and 2
// behind a transaction that holds the row of item 1: whoever had taken item 2
// before item 1 would hold up the other one for ever.
func TestStepsLockAsWritersDo(t *testing.T) {
	for name, c := range map[string]struct {
		into likes.UserID
		held string
	}{
		"counters of an erasure": {0, "update counters set version = version where item_id = 1"},
		"counters of a merge":    {9, "update counters set version = version where item_id = 1"},
		"edges of a merge":       {8, "update edges set clock = clock where item_id = 1 and user_id = 8"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRaw(t, containers.SharedPostgres(t))
			like12 := func(user likes.UserID) error {
				ws := []store.Write{like(1, 1), like(1, 2)}
				for i := range ws {
					ws[i].Edge.User = user
				}
				return commit(t.Context(), r, ws...)
			}
			for _, user := range []likes.UserID{7, 8, 9} {
				require.NoError(t, like12(user))
			}
			require.NoError(t, r.BeginErase(t.Context(), []likes.UserID{7}, c.into))
			tx, err := connect(t, r.dsn).Begin(t.Context())
			require.NoError(t, err)
			_, err = tx.Exec(t.Context(), c.held)
			require.NoError(t, err)
			done := make(chan error, 2)
			go func() { done <- like12(map[bool]likes.UserID{false: 10, true: 8}[c.into == 8]) }()
			awaitLocks(t, r, 1)
			go func() {
				_, err := r.StepErase(t.Context(), 7, 10)
				done <- err
			}()
			awaitLocks(t, r, 2)
			require.NoError(t, tx.Commit(t.Context()))
			require.NoError(t, tx.Conn().Close(t.Context()))
			require.NoError(t, <-done)
			require.NoError(t, <-done)
			finish(t, r.Store)
			requireExact(t, r)
			require.Zero(t, deadlocks(t, r))
		})
	}
}
