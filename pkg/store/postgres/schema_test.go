package postgres_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/store/postgres"
	containers "likectl/testcontainers"
)

func TestSchema(t *testing.T) {
	dsn := containers.SharedPostgres(t).Database(t)
	named := config(dsn)
	named.SchemaUp = "likectl schema up -c here.yaml"
	_, err := postgres.Open(t.Context(), named)
	require.ErrorContains(t, err, "create it with `likectl schema up -c here.yaml`")
	_, err = postgres.Open(t.Context(), config(dsn))
	require.ErrorContains(t, err, "create it with `likectl schema up`")
	before, err := postgres.SchemaStatus(t.Context(), dsn)
	require.NoError(t, err)
	require.NotEmpty(t, before)
	require.Equal(t, int64(postgres.SchemaVersion), before[len(before)-1].Version)
	for _, m := range before {
		require.True(t, m.AppliedAt.IsZero())
	}
	_, err = postgres.Open(t.Context(), config(dsn))
	require.ErrorContains(t, err, "likectl schema up")

	const processes = 4
	applied := make([][]store.Migration, processes)
	errs := make([]error, processes)
	var done sync.WaitGroup
	for i := range processes {
		done.Go(func() { applied[i], errs[i] = postgres.SchemaUp(t.Context(), dsn) })
	}
	done.Wait()
	total := 0
	for i := range processes {
		require.NoError(t, errs[i])
		total += len(applied[i])
	}
	require.Equal(t, len(before), total, "each step was applied once")
	after, err := postgres.SchemaStatus(t.Context(), dsn)
	require.NoError(t, err)
	for _, m := range after {
		require.False(t, m.AppliedAt.IsZero())
	}
	open(t, dsn)

	conn := connect(t, dsn)
	_, err = conn.Exec(t.Context(), "insert into likectl_schema (version_id, is_applied) values (9999, true)")
	require.NoError(t, err)
	_, err = postgres.Open(t.Context(), config(dsn))
	require.ErrorContains(t, err, "newer likectl")
	_, err = postgres.SchemaUp(t.Context(), dsn)
	require.ErrorContains(t, err, "newer likectl")
	_, err = postgres.SchemaStatus(t.Context(), dsn)
	require.ErrorContains(t, err, "newer likectl")
}

// TestSecretIsClaimedOnce: of instances with different secrets one wins, until
// another one says that its secret is to be everybody's.
func TestSecretIsClaimedOnce(t *testing.T) {
	r := newRaw(t, containers.SharedPostgres(t))
	const each = 4
	errs := make([]error, 2*each)
	var done sync.WaitGroup
	for i := range errs {
		done.Go(func() { errs[i] = r.ClaimSecret(t.Context(), []string{"aa", "bb"}[i%2], false) })
	}
	done.Wait()
	var won [2]int
	for i, err := range errs {
		if err == nil {
			won[i%2]++
		} else {
			require.ErrorIs(t, err, postgres.ErrOtherSecret)
		}
	}
	require.ElementsMatch(t, []int{0, each}, won[:])
	require.NoError(t, r.ClaimSecret(t.Context(), "cc", true))
	require.NoError(t, r.ClaimSecret(t.Context(), "cc", false))
	require.ErrorIs(t, r.ClaimSecret(t.Context(), "aa", false), postgres.ErrOtherSecret)
}

func TestConfigHasNoUnlimited(t *testing.T) {
	for name, spoil := range map[string]func(*postgres.Config){
		"connection string":      func(c *postgres.Config) { c.DSN = "" },
		"0 connections":          func(c *postgres.Config) { c.MaxConns = 0 },
		"-1 connections":         func(c *postgres.Config) { c.MaxConns = -1 },
		"8 of 8 connections":     func(c *postgres.Config) { c.Writers = c.MaxConns },
		"-1 of 8 connections":    func(c *postgres.Config) { c.Writers = -1 },
		"statement timeout of 0": func(c *postgres.Config) { c.StatementTimeout = 0 },
		"cannot parse":           func(c *postgres.Config) { c.DSN = "postgres://u:hunter2@host:port/x" },
	} {
		c := config("postgres://u:hunter2@127.0.0.1:1/x")
		spoil(&c)
		_, err := postgres.Open(t.Context(), c)
		require.ErrorContains(t, err, name)
		require.NotContains(t, err.Error(), "hunter2")
	}
	_, err := postgres.Open(t.Context(), config("postgres://u:hunter2@127.0.0.1:1/x"))
	require.ErrorIs(t, err, likes.ErrUnavailable)
	require.NotContains(t, err.Error(), "hunter2")
}

func TestUnsafeServerIsRefused(t *testing.T) {
	server := containers.StartPostgres(t, "fsync=off", "synchronous_commit=off")
	dsn := server.DSN("postgres")
	require.NoError(t, migrate(t.Context(), dsn))
	_, err := postgres.Open(t.Context(), config(dsn))
	require.ErrorContains(t, err, "fsync = off")

	var log strings.Builder
	c := config(dsn)
	c.AllowUnsafe, c.Logger = true, slog.New(slog.NewTextHandler(&log, nil))
	s, err := postgres.Open(t.Context(), c)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.Contains(t, log.String(), "fsync")
	found, err := s.CheckDurability(t.Context())
	require.NoError(t, err)
	values := make(map[string]postgres.Finding)
	for _, f := range found {
		values[f.Setting] = f
	}
	require.True(t, values["fsync"].Unsafe)
	require.False(t, values["full_page_writes"].Unsafe)
	require.Equal(t, "off", values["synchronous_commit"].Value)

	// Off by default on this server, on in likectl's sessions: the write below
	// is flushed when it returns.
	conn := connect(t, dsn)
	require.NoError(t, commit(t.Context(), s, like(1, 1)))
	var unflushed bool
	require.NoError(t, conn.QueryRow(t.Context(), "select pg_current_wal_flush_lsn() < pg_current_wal_insert_lsn()").Scan(&unflushed))
	require.False(t, unflushed)
}

// view is an event of a post.
func view(id int64, n byte) store.Add {
	key := store.Key{Counter: likes.Views, Item: likes.Item{Type: 1, ID: likes.ItemID(id)}}
	return store.Add{Key: key, Event: likes.EventID{n, 1}, At: time.Now().UTC().Truncate(time.Microsecond)}
}

// TestTablesAreUsedAsDesigned holds the physical design to its reasons: no table
// is ever scanned, and toggles touch no index.
func TestTablesAreUsedAsDesigned(t *testing.T) {
	const users, items, toggles = 2000, 10, 4000
	r := newRaw(t, containers.SharedPostgres(t))
	random := rand.New(rand.NewPCG(1, 1))
	// Statistics of tables with one row make every scan look cheap: plans made
	// now would be kept while the tables grow.
	require.NoError(t, commit(t.Context(), r, like(users+1, 1)))
	require.NoError(t, r.Exec(t.Context(), "vacuum analyze edges, counters"))
	for user := int64(1); user <= users; user++ {
		ws := make([]store.Write, items)
		for i := range ws {
			ws[i] = like(user, int64(i+1))
		}
		require.NoError(t, commit(t.Context(), r, ws...))
	}
	for n := range toggles {
		w := like(1+random.Int64N(users), 1+random.Int64N(items))
		w.Liked = n%3 == 0
		require.NoError(t, commit(t.Context(), r, w))
	}
	_, err := r.LikedBy(t.Context(), likes.Likes, 5, likes.Item{Type: 1, ID: 3}, 10)
	require.NoError(t, err)
	_, err = r.Likers(t.Context(), likes.Likes, likes.Item{Type: 1, ID: 3}, 10, 10)
	require.NoError(t, err)
	require.NoError(t, r.Registers(t.Context(), likes.Likes, 5, []likes.Item{{Type: 1, ID: 3}}, make([]likes.Register, 1)))
	_, err = r.WalkEdges(t.Context(), likes.Edge{Counter: likes.Likes}, store.MaxWalk)
	require.NoError(t, err)
	for n := range 200 {
		adds := []store.Add{view(int64(n%items+1), byte(n))}
		require.NoError(t, r.Add(t.Context(), adds, make([]store.Added, 1)))
	}
	forgotten, err := r.Forget(t.Context(), time.Now().Add(time.Hour), 150)
	require.NoError(t, err)
	require.Equal(t, 150, forgotten)
	requireExact(t, r)
	require.NoError(t, r.Close()) // its sessions report their statistics
	var scans, updates, hot int64
	poll(t, "the statistics have arrived", func() bool {
		require.NoError(t, r.conn.QueryRow(t.Context(), `select sum(seq_scan), sum(n_tup_upd) filter (where relname = 'edges'),
			sum(n_tup_hot_upd) filter (where relname = 'edges') from pg_stat_user_tables where relname in ('edges', 'counters', 'tally_events')`).
			Scan(&scans, &updates, &hot))
		return updates == toggles
	})
	t.Logf("%d of %d toggles were HOT", hot, updates)
	require.Zero(t, scans)
	require.Greater(t, hot*100, updates*90)

	bytes, err := r.Int(t.Context(), fmt.Sprintf("select pg_total_relation_size('edges') / %d", users*items))
	require.NoError(t, err)
	t.Logf("%d bytes per edge with both indexes", bytes)
	require.Less(t, bytes, int64(250))
}

// TestAFailedConnectionIsToldOnce: with TLS preferred, the driver tries twice.
func TestAFailedConnectionIsToldOnce(t *testing.T) {
	address := containers.SharedPostgres(t).Addr()
	for dsn, says := range map[string]string{
		"postgres://postgres:wrong@" + address + "/postgres": "password authentication failed",
		"postgres://u@127.0.0.1:1/x":                         "connection refused",
	} {
		_, opened := postgres.Open(t.Context(), config(dsn))
		_, status := postgres.SchemaStatus(t.Context(), dsn)
		for _, err := range []error{opened, status} {
			require.Equal(t, 1, strings.Count(err.Error(), says), err)
			require.NotContains(t, err.Error(), "TLS")
			require.NotContains(t, err.Error(), "\n")
		}
	}
}

func TestSessionsAreNamed(t *testing.T) {
	dsn := containers.SharedPostgres(t).MigratedDatabase(t, "likectl_schema", migrate)
	for suffix, want := range map[string]string{"": "likectl", "&application_name=shop": "shop"} {
		open(t, dsn+suffix)
		var n int
		require.NoError(t, connect(t, dsn).QueryRow(t.Context(),
			"select count(*) from pg_stat_activity where datname = current_database() and application_name = $1", want).Scan(&n))
		require.Positive(t, n, want)
	}
}

func TestNowIsTheServersClock(t *testing.T) {
	r := newRaw(t, containers.SharedPostgres(t))
	now, err := r.Now(t.Context())
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), now, 5*time.Second)
}
