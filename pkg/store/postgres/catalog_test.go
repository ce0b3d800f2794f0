package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/store/postgres"
	"likectl/pkg/visibility"
	containers "likectl/testcontainers"
)

func putItem(t *testing.T, s store.Catalog, id likes.ItemID, owner likes.UserID, level visibility.Level) {
	t.Helper()
	_, _, err := s.PutItem(t.Context(), store.ItemChange{Item: likes.Item{Type: 1, ID: id}, Owner: &owner, Level: level})
	require.NoError(t, err)
}

// planNode is a node of EXPLAIN's answer.
type planNode struct {
	Type  string     `json:"Node Type"`
	Index string     `json:"Index Name"`
	Loops float64    `json:"Actual Loops"`
	Plans []planNode `json:"Plans"`
}

// searches counts the descents of each index, and the nodes that are none.
func (n planNode) searches(into map[string]float64) map[string]float64 {
	switch {
	case n.Index != "":
		into[n.Index] += n.Loops
	case strings.Contains(n.Type, "Scan"):
		into[n.Type] += n.Loops
	}
	for _, p := range n.Plans {
		p.searches(into)
	}
	return into
}

// explainFacts runs the statement with the plan that the store's sessions keep, and
// returns how often it searched in each index.
func explainFacts(t *testing.T, conn *pgx.Conn, viewer int64, items string) map[string]float64 {
	t.Helper()
	var plan []byte
	execute := fmt.Sprintf("explain (analyze, format json) execute facts(%d, array_fill(1::smallint, array[cardinality('{%s}'::bigint[])]), '{%s}')",
		viewer, items, items)
	require.NoError(t, conn.QueryRow(t.Context(), execute, pgx.QueryExecModeSimpleProtocol).Scan(&plan))
	var answer []struct{ Plan planNode }
	require.NoError(t, json.Unmarshal(plan, &answer))
	return answer[0].Plan.searches(map[string]float64{})
}

// TestFactsDoTheSameWorkForEveryItem: the searches in the indexes, and so the time,
// do not depend on whether the item exists or what keeps the viewer from it.
func TestFactsDoTheSameWorkForEveryItem(t *testing.T) {
	const viewer = 5
	r := newRaw(t, containers.SharedPostgres(t))
	for id := likes.ItemID(1); id <= 400; id++ { // some pages, so that scans are no cheaper
		putItem(t, r, id, likes.UserID(100+id), visibility.Level(1+id%3))
	}
	putItem(t, r, 3, 0, visibility.Private)
	_, err := r.PutBlock(t.Context(), store.Block{Item: likes.Item{Type: 1, ID: 4}, Blocked: viewer}, true)
	require.NoError(t, err)
	_, err = r.PutBlock(t.Context(), store.Block{Blocker: 105, Blocked: viewer}, true)
	require.NoError(t, err)
	_, err = r.PutFollow(t.Context(), store.Follow{Follower: viewer, Followee: 106}, true)
	require.NoError(t, err)
	require.NoError(t, r.Exec(t.Context(), postgres.SessionSQL()))
	require.NoError(t, r.Exec(t.Context(), "vacuum analyze items, blocks, item_blocks, follows"))
	require.NoError(t, r.Exec(t.Context(), "prepare facts(bigint, smallint[], bigint[]) as "+postgres.FactsSQL))
	unknown := explainFacts(t, r.conn, viewer, "999")
	t.Log(unknown)
	searches := 0.0
	for index, n := range unknown {
		if index != "Function Scan" {
			require.Contains(t, []string{
				"items_pkey", "follows_pkey", "follows_by_followee", "item_blocks_pkey", "blocks_pkey", "blocks_by_blocked",
			}, index)
			searches += n
		}
	}
	require.InDelta(t, 5, searches, 0)
	for what, id := range map[string]string{"private": "2", "without an owner": "3", "blocked from it": "4", "blocked by its owner": "5", "followed": "6"} {
		for _, user := range []int64{viewer, 0} {
			require.Equal(t, unknown, explainFacts(t, r.conn, user, id), "%s, viewer %d", what, user)
		}
	}
	for index, n := range explainFacts(t, r.conn, viewer, "1,999,4,2") {
		if index != "Function Scan" {
			require.InDelta(t, 4*unknown[index], n, 0, index)
		}
	}
}

// TestCatalogScansNoTable: plans that were made while the tables were small are
// kept while they grow.
func TestCatalogScansNoTable(t *testing.T) {
	r := newRaw(t, containers.SharedPostgres(t))
	for id := likes.ItemID(1); id <= 200; id++ {
		if id == 2 {
			require.NoError(t, r.Exec(t.Context(), "vacuum analyze items, blocks, item_blocks, follows, edges, counters"))
		}
		user := likes.UserID(id)
		putItem(t, r, id, 1+user%5, visibility.Public)
		_, err := r.PutBlock(t.Context(), store.Block{Blocker: user, Blocked: user + 1}, true)
		require.NoError(t, err)
		_, err = r.PutBlock(t.Context(), store.Block{Item: likes.Item{Type: 1, ID: id}, Blocked: user}, true)
		require.NoError(t, err)
		_, err = r.PutFollow(t.Context(), store.Follow{Follower: user, Followee: user + 1}, id%2 == 0)
		require.NoError(t, err)
		require.NoError(t, r.Facts(t.Context(), user, []likes.Item{{Type: 1, ID: id}}, make([]visibility.Facts, 1)))
		require.NoError(t, r.Blocked(t.Context(), user, []likes.UserID{1}, make([]bool, 1)))
		require.NoError(t, commit(t.Context(), r, like(int64(user%5+1), int64(id))))
		_, err = r.Totals(t.Context(), 1+user%5)
		require.NoError(t, err)
		_, err = r.Restricts(t.Context())
		require.NoError(t, err)
	}
	require.NoError(t, r.Close()) // its sessions report their statistics
	var scans, inserted int64
	poll(t, "the statistics have arrived", func() bool {
		require.NoError(t, r.conn.QueryRow(t.Context(), `select sum(seq_scan), sum(n_tup_ins) filter (where relname = 'items')
			from pg_stat_user_tables where relname in ('items', 'blocks', 'item_blocks', 'follows', 'edges', 'counters')`).Scan(&scans, &inserted))
		return inserted == 200
	})
	require.Zero(t, scans)
}

// TestAPutThatWasGivenUpDoesNotComeBack: an item that was made private since must
// not be public again.
func TestAPutThatWasGivenUpDoesNotComeBack(t *testing.T) {
	server := containers.SharedPostgres(t)
	r := newRaw(t, server)
	proxy := containers.NewProxy(t, server.Addr())
	c := config(strings.Replace(r.dsn, server.Addr(), proxy.Addr(), 1) + "&application_name=slow")
	c.MaxConns = 1
	slow, err := postgres.Open(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, slow.Close()) })
	putItem(t, slow, 1, 7, visibility.Followers)

	proxy.DelayRequests(t, time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, _, err = slow.PutItem(ctx, store.ItemChange{Item: likes.Item{Type: 1, ID: 1}, Level: visibility.Public})
	require.ErrorIs(t, err, likes.ErrUncertain)
	putItem(t, r, 1, 7, visibility.Private)
	poll(t, "the session that gets the put has ended", func() bool {
		n, err := r.Int(t.Context(), "select count(*) from pg_stat_activity where application_name = 'slow' and datname = current_database()")
		require.NoError(t, err)
		return n == 0
	})
	level, err := r.Int(t.Context(), "select level from items")
	require.NoError(t, err)
	require.Equal(t, int64(visibility.Private), level)
}

// TestNoPutChangesAnythingLate gives every statement a time that has passed.
func TestNoPutChangesAnythingLate(t *testing.T) {
	r := newRaw(t, containers.SharedPostgres(t))
	in, late := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	for _, put := range []struct {
		sql     string
		on, off []any
	}{
		{postgres.PutItemSQL, []any{1, 1, 7, 1, 1, 1}, []any{1, 1, 8, 3, 3, 0}},
		{postgres.PutBlockSQL, []any{1, 2, true}, []any{1, 2, false}},
		{postgres.PutItemBlockSQL, []any{1, 1, 2, true}, []any{1, 1, 2, false}},
		{postgres.PutFollowSQL, []any{1, 2, true}, []any{1, 2, false}},
	} {
		for _, args := range [][]any{put.on, put.off} {
			before := catalogRows(t, r)
			tag, err := r.conn.Exec(t.Context(), put.sql, append(slices.Clone(args), late)...)
			require.NoError(t, err)
			require.Zero(t, tag.RowsAffected(), "no row is the answer of one that came late: %s", put.sql)
			require.Equal(t, before, catalogRows(t, r), put.sql)
			for range 2 {
				tag, err = r.conn.Exec(t.Context(), put.sql, append(slices.Clone(args), in)...)
				require.NoError(t, err)
				require.Equal(t, int64(1), tag.RowsAffected(), put.sql)
			}
			require.NotEqual(t, before, catalogRows(t, r), put.sql)
		}
	}
}

func catalogRows(t *testing.T, r raw) (all string) {
	t.Helper()
	for _, table := range []string{"items", "blocks", "item_blocks", "follows"} {
		var rows string
		require.NoError(t, r.conn.QueryRow(t.Context(), fmt.Sprintf("select coalesce(string_agg(x::text, ' '), '') from %s x", table)).Scan(&rows))
		all += table + rows
	}
	return all
}

// TestPutsAfterAServerClockThatJumped cost one repeat each.
func TestPutsAfterAServerClockThatJumped(t *testing.T) {
	r := newRaw(t, containers.SharedPostgres(t))
	for range 2 { // the second ones change nothing, and say so
		postgres.SetServerClock(r.Store, time.Now().Add(-time.Hour))
		putItem(t, r, 1, 1, visibility.Private)
		postgres.SetServerClock(r.Store, time.Now().Add(-time.Hour))
		_, err := r.PutFollow(t.Context(), store.Follow{Follower: 1, Followee: 2}, true)
		require.NoError(t, err)
	}
	n, err := r.Int(t.Context(), "select (select count(*) from items where level = 3) * 10 + (select count(*) from follows)")
	require.NoError(t, err)
	require.Equal(t, int64(11), n)
}

// TestAnEqualPutInFlightIsWaitedFor: the row, or its version, is younger than the
// snapshot of the put that waited for it, which is answered with it all the same.
func TestAnEqualPutInFlightIsWaitedFor(t *testing.T) {
	r := newRaw(t, containers.SharedPostgres(t))
	watch := raw{Store: r.Store, conn: connect(t, r.dsn), dsn: r.dsn}
	type answer struct {
		now     visibility.Item
		changed bool
		err     error
	}
	answers := make(chan answer, 1)
	for _, step := range []struct {
		sql   string
		level visibility.Level
	}{
		{"insert into items (item_type, item_id, owner_id, level, state, hide_counts) values (1, 1, 7, 2, 1, true)", visibility.Followers},
		{"update items set level = 3", visibility.Private},
	} {
		tx, err := r.conn.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), step.sql)
		require.NoError(t, err)
		go func() {
			now, changed, err := r.PutItem(t.Context(), store.ItemChange{Item: likes.Item{Type: 1, ID: 1}, Level: step.level})
			answers <- answer{now, changed, err}
		}()
		awaitLocks(t, watch, 1)
		require.NoError(t, tx.Commit(t.Context()))
		require.Equal(t, answer{now: visibility.Item{
			Item: likes.Item{Type: 1, ID: 1}, Owner: 7, Level: step.level, State: visibility.Live, HideCounts: true,
		}}, <-answers, step.sql)
	}
}
