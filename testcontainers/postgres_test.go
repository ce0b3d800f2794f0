package containers_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	containers "likectl/testcontainers"
)

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func count(t *testing.T, conn *pgx.Conn) (n int) {
	t.Helper()
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT count(*) FROM notes").Scan(&n))
	return n
}

func migrateNotes(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, "CREATE TABLE notes (i int)")
	return err
}

func TestPostgres_KillKeepsCommits(t *testing.T) {
	p := containers.SharedPostgres(t)
	dsn := p.MigratedDatabase(t, "notes", migrateNotes)
	conn := connect(t, dsn)
	_, err := conn.Exec(t.Context(), "INSERT INTO notes SELECT generate_series(1, 1000)")
	require.NoError(t, err)

	p.Kill(t)
	_, err = conn.Exec(t.Context(), "SELECT 1")
	require.Error(t, err, "the connection must die with the server")
	_, err = pgx.Connect(t.Context(), dsn)
	require.Error(t, err, "a killed server must not accept")

	p.Start(t)
	require.Equal(t, 1000, count(t, connect(t, dsn)), "acknowledged rows, at the same address")
}

func TestPostgres_DatabasesAreSeparate(t *testing.T) {
	p := containers.SharedPostgres(t)
	one := connect(t, p.MigratedDatabase(t, "notes", migrateNotes))
	two := connect(t, p.MigratedDatabase(t, "notes", migrateNotes))
	_, err := one.Exec(t.Context(), "INSERT INTO notes VALUES (1)")
	require.NoError(t, err)
	require.Equal(t, 1, count(t, one))
	require.Equal(t, 0, count(t, two))
	_, err = connect(t, p.Database(t)).Exec(t.Context(), "SELECT count(*) FROM notes")
	require.Error(t, err, "an unmigrated database has no tables")
}

func TestPostgres_SyncsEveryCommit(t *testing.T) {
	p := containers.SharedPostgres(t)
	conn := connect(t, p.MigratedDatabase(t, "notes", migrateNotes))
	for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
		var value string
		require.NoError(t, conn.QueryRow(t.Context(), "SHOW "+setting).Scan(&value))
		require.Equal(t, "on", value, setting)
	}
	before := p.WALStats(t)
	const commits = 50
	for range commits {
		_, err := conn.Exec(t.Context(), "INSERT INTO notes VALUES (1)")
		require.NoError(t, err)
	}
	require.NoError(t, conn.Close(t.Context())) // publishes the session's numbers
	require.Eventually(t, func() bool {
		now := p.WALStats(t)
		return now.Syncs-before.Syncs >= commits && now.SyncTime > before.SyncTime && now.Bytes > before.Bytes
	}, 10*time.Second, 20*time.Millisecond, "one client's commits share no fsync")
}

func TestPostgres_SettingsWin(t *testing.T) {
	conn := connect(t, containers.StartPostgres(t, "synchronous_commit=off").DSN("postgres"))
	var value string
	require.NoError(t, conn.QueryRow(t.Context(), "SHOW synchronous_commit").Scan(&value))
	require.Equal(t, "off", value)
}

func TestPostgres_CutIsSilentAndHeals(t *testing.T) {
	p := containers.SharedPostgres(t)
	conn := connect(t, p.MigratedDatabase(t, "notes", migrateNotes))
	p.Cut(t)
	begun := time.Now()
	_, err := conn.Exec(within(t, 300*time.Millisecond), "SELECT 1")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.GreaterOrEqual(t, time.Since(begun), 300*time.Millisecond, "no refusal, no reset: silence")
	p.Heal(t)
	require.Equal(t, 0, count(t, connect(t, conn.Config().ConnString())))
}
