package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"likectl/pkg/store/postgres"
	"likectl/pkg/store/storetest"
	containers "likectl/testcontainers"
)

func TestMain(m *testing.M) {
	containers.Main(m,
		// pgx closes a broken connection in the background, for up to 15 s.
		goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgconn.(*PgConn).asyncClose.func1"))
}

func TestSuite(t *testing.T) {
	server := containers.SharedPostgres(t)
	storetest.Run(t, func(tb testing.TB) storetest.Store { return newRaw(tb, server) })
}

// raw is a store with a second way into its database.
type raw struct {
	*postgres.Store
	conn *pgx.Conn
	dsn  string
}

func newRaw(tb testing.TB, server *containers.Postgres) raw {
	tb.Helper()
	dsn := server.MigratedDatabase(tb, "likectl_schema", migrate)
	return raw{Store: open(tb, dsn), conn: connect(tb, dsn), dsn: dsn}
}

func migrate(ctx context.Context, dsn string) error {
	_, err := postgres.SchemaUp(ctx, dsn)
	return err
}

func (r raw) Exec(ctx context.Context, statement string) error {
	_, err := r.conn.Exec(ctx, statement)
	return err
}

func (r raw) Int(ctx context.Context, query string) (n int64, err error) {
	err = r.conn.QueryRow(ctx, query).Scan(&n)
	return n, err
}

func config(dsn string) postgres.Config {
	return postgres.Config{DSN: dsn, MaxConns: 8, StatementTimeout: 10 * time.Second}
}

func open(tb testing.TB, dsn string) *postgres.Store {
	tb.Helper()
	s, err := postgres.Open(tb.Context(), config(dsn))
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, s.Close()) })
	return s
}

func connect(tb testing.TB, dsn string) *pgx.Conn {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), dsn)
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}
