package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/store/postgres"
	containers "likectl/testcontainers"
)

func inspect(t *testing.T, dsn string) *postgres.Inspection {
	t.Helper()
	i, err := postgres.Inspect(t.Context(), config(dsn))
	require.NoError(t, err)
	defer func() { require.NoError(t, i.Close(context.Background())) }()
	found, err := i.Look(t.Context())
	require.NoError(t, err)
	now, err := i.Now(t.Context())
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), now, 10*time.Second)
	return found
}

func TestInspectorSeesWhatIsThere(t *testing.T) {
	server := containers.StartPostgres(t, "autovacuum=off", "max_connections=50", "superuser_reserved_connections=4")
	empty := inspect(t, server.DSN("postgres"))
	require.ErrorContains(t, empty.Schema, "likectl schema up")
	require.Empty(t, empty.Tables)
	require.Equal(t, 46, empty.Connections)
	require.Zero(t, empty.Others)
	require.False(t, empty.ReadOnly)
	require.False(t, empty.Autovacuum)
	require.False(t, empty.Archiving)
	require.Empty(t, empty.Standbys)
	require.Regexp(t, `^1\d`, empty.Version)

	dsn := server.MigratedDatabase(t, "likectl_schema", migrate)
	r := raw{Store: open(t, dsn), conn: connect(t, dsn), dsn: dsn}
	for user := range int64(200) {
		require.NoError(t, commit(t.Context(), r, like(user+1, 1)))
	}
	require.NoError(t, r.Exec(t.Context(), "vacuum analyze edges"))
	require.NoError(t, r.Exec(t.Context(), "delete from edges where user_id <= 150"))
	require.NoError(t, r.Exec(t.Context(), "alter table counters set (autovacuum_enabled = false)"))
	require.NoError(t, r.Exec(t.Context(), "select pg_stat_force_next_flush()")) // not within the transaction below
	other := connect(t, server.DSN("postgres"))
	tx, err := r.conn.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	var database string
	require.NoError(t, tx.QueryRow(t.Context(), "select current_database()").Scan(&database))
	_, err = other.Exec(t.Context(), fmt.Sprintf("alter database %q connection limit 9", database))
	require.NoError(t, err)
	_, err = other.Exec(t.Context(), fmt.Sprintf("alter database %q set default_transaction_read_only = on", database))
	require.NoError(t, err)

	var found *postgres.Inspection
	poll(t, "the statistics have arrived", func() bool {
		found = inspect(t, dsn)
		return len(found.Tables) == 2 && found.Tables[1].Dead >= 150
	})
	require.NoError(t, found.Schema)
	require.True(t, found.ReadOnly)
	require.Equal(t, 9, found.Connections)
	require.Equal(t, 1, found.Others)
	require.Positive(t, found.Longest)
	counters, edges := found.Tables[0], found.Tables[1]
	require.Equal(t, "counters", counters.Name)
	require.False(t, counters.Autovacuum)
	require.Zero(t, counters.Vacuumed)
	require.True(t, edges.Autovacuum)
	require.WithinDuration(t, time.Now(), edges.Vacuumed, time.Minute)
	require.Positive(t, edges.Bytes)
	require.Positive(t, edges.Age)
	require.InDelta(t, 50, edges.Live, 5)

	_, err = postgres.Inspect(t.Context(), config("postgres://u:hunter2@127.0.0.1:1/x"))
	require.ErrorContains(t, err, "127.0.0.1:1")
	require.NotContains(t, err.Error(), "hunter2")
}
