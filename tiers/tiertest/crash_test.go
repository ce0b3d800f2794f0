package tiertest_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"likectl/pkg/auth"
	"likectl/pkg/datadir"
	containers "likectl/testcontainers"
	"likectl/tiers/tiertest"
)

func TestMain(m *testing.M) {
	containers.Main(m,
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// embedded is a crash target on a data folder of its own.
func embedded(t *testing.T, tags ...string) tiertest.CrashTarget {
	t.Helper()
	data, token := dataFolder(t)
	return tiertest.CrashTarget{
		Binary: tiertest.Build(t, tags...), Args: []string{"--data", data}, ServiceToken: token,
	}
}

// dataFolder makes a data folder and a token that is good where it is used.
func dataFolder(t *testing.T) (data, token string) {
	t.Helper()
	data = t.TempDir()
	dir, err := datadir.Open(data)
	require.NoError(t, err)
	authority, err := auth.New(auth.Default(dir.Secret()))
	require.NoError(t, err)
	token, err = authority.Mint(1, auth.Service, time.Hour)
	require.NoError(t, err)
	require.NoError(t, dir.Close())
	return data, token
}

func TestCrashEmbedded(t *testing.T) {
	target := embedded(t)
	if testing.Short() {
		target.Kills, target.Between = 3, 300
	}
	tiertest.Crash(t, target)
}

// TestCrashPostgres has two processes on one Postgres.
func TestCrashPostgres(t *testing.T) {
	server := containers.StartPostgres(t)
	dsn := server.Database(t)
	data, token := dataFolder(t)
	target := tiertest.CrashTarget{
		Binary: tiertest.Build(t), Args: []string{"--tier", "1", "--data", data}, Env: []string{"LIKECTL_POSTGRES_DSN=" + dsn},
		ServiceToken: token, Servers: 2,
		KillDB:  func(context.Context) error { server.Kill(t); return nil },
		StartDB: func(context.Context) error { server.Start(t); return nil },
	}
	target.Quiesce = func(ctx context.Context, n int) error { return noSessions(ctx, dsn, tiertest.AppName(n)) }
	tiertest.Likectl(t, target.Binary, target.Env, "schema", "up", "--data", data)
	tiertest.Crash(t, target)
}

// noSessions returns once the server has no session of that name.
func noSessions(ctx context.Context, dsn, name string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for left := 1; left > 0; {
		err := conn.QueryRow(ctx, "select count(*) from pg_stat_activity where application_name = $1", name).Scan(&left)
		if err != nil {
			return err
		}
	}
	return nil
}

// TestCrashCatchesAckBeforeCommit tests the suite: a binary that answers before
// it has committed is found out.
func TestCrashCatchesAckBeforeCommit(t *testing.T) {
	target := embedded(t, "ackbeforecommit")
	target.Kills, target.Between = 5, 300
	tiertest.CrashCatches(t, target)
}
