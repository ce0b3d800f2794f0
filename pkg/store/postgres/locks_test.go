package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/store/postgres"
	containers "likectl/testcontainers"
)

// answer is what a client is told about its like.
type answer struct {
	was   bool
	count int64
}

// liker likes one edge in a transaction of its own.
type liker func(ctx context.Context, e likes.Edge) (answer, error)

// waits makes waiters meet locks: a transaction that is held open likes the
// edges, pairs of clients like the same ones and block, and once all of them
// wait the transaction commits or rolls back.
type waits struct {
	rounds, edges int // each round has 2 * edges waiting clients
	sql           string
	like          liker
}

func testEdge(round, i int) likes.Edge {
	return likes.Edge{Counter: likes.Likes, Item: likes.Item{Type: 1, ID: likes.ItemID(round*1000 + i + 1)}, User: 7}
}

// violations returns what clients were told that cannot be, and counts that are
// not their edges.
func (w waits) violations(t *testing.T, r raw) (found []string) {
	t.Helper()
	holder := connect(t, r.dsn)
	forced := 0
	for round := range w.rounds {
		edges := make([]likes.Edge, w.edges)
		for i := range edges {
			edges[i] = testEdge(round, i)
		}
		tx, err := holder.Begin(t.Context())
		require.NoError(t, err)
		held, err := issueRaw(t.Context(), tx, w.sql, edges)
		require.NoError(t, err)
		told := make([][]answer, w.edges)
		var mu sync.Mutex
		var done sync.WaitGroup
		for i := range 2 * w.edges {
			done.Go(func() {
				a, err := w.like(t.Context(), edges[i/2])
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					found = append(found, err.Error())
				}
				told[i/2] = append(told[i/2], a)
			})
		}
		forced += awaitLocks(t, r, 2*w.edges)
		end := tx.Commit
		if round%3 == 2 {
			end = tx.Rollback
		}
		require.NoError(t, end(t.Context()))
		done.Wait()
		for i := range edges {
			if round%3 != 2 {
				told[i] = append(told[i], held[i])
			}
		}
		found = append(found, judge(t, r, edges, told)...)
	}
	require.NoError(t, holder.Close(t.Context()))
	t.Logf("%d lock waits forced", forced)
	require.Equal(t, w.rounds*2*w.edges, forced)
	return found
}

// judge compares what the clients of each edge were told with each other and
// with the stored count.
func judge(t *testing.T, r raw, edges []likes.Edge, told [][]answer) (found []string) {
	t.Helper()
	for i, e := range edges {
		firsts := 0
		for _, a := range told[i] {
			if !a.was {
				firsts++
			}
			if a.count != 1 {
				found = append(found, fmt.Sprintf("%v: told count %d with was=%t", e, a.count, a.was))
			}
		}
		stored, err := r.Int(t.Context(), fmt.Sprintf("select count from counters where item_id = %d", e.Item.ID))
		require.NoError(t, err)
		if firsts != 1 || stored != 1 {
			found = append(found, fmt.Sprintf("%v: %d first likes, count %d", e, firsts, stored))
		}
	}
	return found
}

// issueRaw runs a batch statement, real or planted, and returns the answers by
// position.
func issueRaw(ctx context.Context, db interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, sql string, edges []likes.Edge,
) ([]answer, error) {
	n := len(edges)
	counters, types, items, users := make([]int16, n), make([]int16, n), make([]int64, n), make([]int64, n)
	clocks, times, liked := make([]int64, n), make([]time.Time, n), make([]bool, n)
	for i, e := range edges {
		counters[i], types[i], items[i], users[i] = int16(e.Counter), int16(e.Item.Type), int64(e.Item.ID), int64(e.User)
		clocks[i], times[i], liked[i] = 1<<20, time.Now(), true
	}
	args := []any{counters, types, items, users, clocks, times, liked, []string{}, []int64{}}
	if strings.Contains(sql, "$10") {
		args = append(args, time.Now().Add(time.Hour))
	}
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	out := make([]answer, n)
	var e likes.Edge
	var was bool
	var a, b int64
	_, err = pgx.ForEachRow(rows, []any{&e.Counter, &e.Item.Type, &e.Item.ID, &e.User, &was, &a, &b}, func() error {
		i := slices.IndexFunc(edges, func(o likes.Edge) bool { return o.Item == e.Item })
		if e.User == 0 {
			out[i].count = a
		} else {
			out[i].was = was
		}
		return nil
	})
	return out, err
}

// awaitLocks returns n once n sessions of this database wait for a lock.
func awaitLocks(t *testing.T, r raw, n int) int {
	t.Helper()
	poll(t, fmt.Sprintf("%d sessions wait for locks", n), func() bool {
		waiting, err := r.Int(t.Context(), "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'")
		require.NoError(t, err)
		return waiting == int64(n)
	})
	return n
}

// poll tries until the condition holds; 20 s without it fail the test.
func poll(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			require.FailNow(t, "not within 20 s", what)
		case <-tick.C:
		}
	}
}

// The old state read by a part of the statement comes from its snapshot.
const plantedOldState = `
with w as (
	select * from unnest($1::smallint[], $2::smallint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::timestamptz[], $7::bool[])
		as w(c, t, i, u, k, a, l)
	where $8::uuid[] is not null and $9::bigint[] is not null),
old as (
	select e.* from w join edges e on (e.counter, e.item_type, e.item_id, e.user_id) = (w.c, w.t, w.i, w.u)),
ins as (
	insert into edges as e (counter, item_type, item_id, user_id, clock, liked_at, liked, was)
	select c, t, i, u, k, a, l, false from w
	on conflict (counter, item_type, item_id, user_id) do update set liked = excluded.liked,
		clock = greatest(excluded.clock, e.clock + 4096)
	returning counter, item_type, item_id, user_id, liked, clock),
up as (
	select ins.*, coalesce(old.liked, false) as was
	from ins left join old using (counter, item_type, item_id, user_id)),
d as materialized (
	select counter, item_type, item_id, sum(liked::int - was::int) as n from up group by 1, 2, 3 order by 1, 2, 3),
c as (
	insert into counters as c (counter, item_type, item_id, count, version)
	select counter, item_type, item_id, n, 1 from d where n <> 0
	on conflict (counter, item_type, item_id) do update set count = c.count + excluded.count, version = c.version + 1
	returning counter, item_type, item_id, count)
select counter, item_type, item_id, user_id, was, clock, 0::bigint from up
union all select counter, item_type, item_id, 0, false, count, 0 from c`

// plantedOldCount reads the counters of unchanged items in the statement's own
// snapshot.
func plantedOldCount() string {
	return strings.Replace(postgres.IssueSQL, "cross join lateral likectl_counts(same.c, same.t, same.i) f",
		`cross join lateral (select x.* from unnest(same.c, same.t, same.i) as i(c, t, id)
			join counters x on x.counter = i.c and x.item_type = i.t and x.item_id = i.id) f`, 1)
}

// byStore likes through the store.
func byStore(s store.Edges) liker {
	return func(ctx context.Context, e likes.Edge) (answer, error) {
		out := make([]store.Written, 1)
		err := s.Commit(ctx, store.Commit{Writes: []store.Write{{Edge: e, Liked: true, Clock: 1 << 20, LikedAt: time.Now()}}}, out)
		return answer{was: out[0].Was, count: out[0].Count}, err
	}
}

func TestForcedLockWaits(t *testing.T) {
	server := containers.SharedPostgres(t)
	const edges = 25
	t.Run("real", func(t *testing.T) {
		r := newRaw(t, server)
		c := config(r.dsn)
		c.MaxConns = 2 * edges
		s, err := postgres.Open(t.Context(), c)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		require.Empty(t, waits{rounds: 24, edges: edges, sql: postgres.IssueSQL, like: byStore(s)}.violations(t, r))
		require.Zero(t, deadlocks(t, r, s))
	})
	for name, planted := range map[string]struct{ sql, symptom string }{
		"old state from the snapshot": {plantedOldState, "2 first likes"},
		"old count from the snapshot": {plantedOldCount(), "told count 0 with was=true"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NotEqual(t, postgres.IssueSQL, planted.sql)
			r := newRaw(t, server)
			c, err := pgxpool.ParseConfig(r.dsn)
			require.NoError(t, err)
			c.MaxConns = 2 * edges
			pool, err := pgxpool.NewWithConfig(t.Context(), c)
			require.NoError(t, err)
			t.Cleanup(pool.Close)
			like := func(ctx context.Context, e likes.Edge) (answer, error) {
				out, err := issueRaw(ctx, pool, planted.sql, []likes.Edge{e})
				if err != nil {
					return answer{}, err
				}
				return out[0], nil
			}
			found := waits{rounds: 3, edges: edges, sql: planted.sql, like: like}.violations(t, r)
			require.Contains(t, strings.Join(found, "\n"), planted.symptom, "the check must see the planted bug")
		})
	}
}
