package containers

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"github.com/testcontainers/testcontainers-go"
)

const postgresImage = "postgres:15"

// Postgres is a real Postgres server that keeps its promises: fsync, synchronous_commit and full_page_writes are on.
type Postgres struct {
	*Container

	mu        sync.Mutex
	templates map[string]bool
	databases atomic.Int64
}

// StartPostgres starts a server for this test alone. Settings are "name=value" as in postgresql.conf and win over ours.
func StartPostgres(tb testing.TB, settings ...string) *Postgres {
	tb.Helper()
	return start(tb, func(ctx context.Context) (*Postgres, error) { return openPostgres(ctx, settings) })
}

// SharedPostgres returns the package's server.
func SharedPostgres(tb testing.TB) *Postgres {
	tb.Helper()
	return share(tb, func(ctx context.Context) (*Postgres, error) { return openPostgres(ctx, nil) })
}

func openPostgres(ctx context.Context, settings []string) (*Postgres, error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	p := &Postgres{templates: make(map[string]bool)}
	command := []string{"postgres"}
	for _, s := range append([]string{
		"fsync=on", "synchronous_commit=on", "full_page_writes=on", "max_connections=200",
		"track_wal_io_timing=on", // fills WALStats.SyncTime; costs two clock readings per fsync
	}, settings...) {
		command = append(command, "-c", s)
	}
	// The entrypoint's temporary server listens on a socket only, so an answer over TCP is the real server's.
	p.Container, err = run(ctx, spec{
		image: postgresImage, port: 5432, hostPorts: ports,
		options: []testcontainers.ContainerCustomizer{
			testcontainers.WithEnv(map[string]string{"POSTGRES_PASSWORD": "likectl"}),
			testcontainers.WithCmd(command...),
		},
		ready: func(ctx context.Context) error {
			return onPostgres(ctx, postgresDSN(ports[0], "postgres"), func(conn *pgx.Conn) error { return conn.Ping(ctx) })
		},
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

func postgresDSN(port int, database string) string {
	return fmt.Sprintf("postgres://postgres:likectl@127.0.0.1:%d/%s?sslmode=disable", port, database)
}

// onPostgres lends a connection to f and closes it.
func onPostgres(ctx context.Context, dsn string, f func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return f(conn)
}

// DSN returns the connection string of a database on this server as the superuser; "postgres" always exists.
func (p *Postgres) DSN(database string) string {
	return "postgres://postgres:likectl@" + p.Addr() + "/" + database + "?sslmode=disable"
}

// Database creates an empty database for this test, drops it afterwards, and returns its DSN.
func (p *Postgres) Database(tb testing.TB) string {
	tb.Helper()
	return p.cloneDatabase(tb, "template1")
}

// MigratedDatabase is Database with a schema: the first call with this template name makes a template database and calls
// migrate on it (which must close its connections), every call clones it. A clone takes about 50 ms.
func (p *Postgres) MigratedDatabase(tb testing.TB, template string, migrate func(ctx context.Context, dsn string) error) string {
	tb.Helper()
	p.mu.Lock()
	defer p.mu.Unlock() // also held while cloning: Postgres refuses to clone a template that is in use
	if !p.templates[template] {
		p.exec(tb, "CREATE DATABASE "+pgx.Identifier{template}.Sanitize())
		require.NoError(tb, migrate(tb.Context(), p.DSN(template)), "migrate the template database")
		p.templates[template] = true
	}
	return p.cloneDatabase(tb, template)
}

func (p *Postgres) cloneDatabase(tb testing.TB, template string) string {
	tb.Helper()
	name := fmt.Sprintf("test_%d", p.databases.Add(1))
	p.exec(tb, fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", name, pgx.Identifier{template}.Sanitize()))
	tb.Cleanup(func() { p.exec(tb, "DROP DATABASE "+name+" WITH (FORCE)") })
	return p.DSN(name)
}

func (p *Postgres) exec(tb testing.TB, statement string) {
	tb.Helper()
	call(tb, statement, func(ctx context.Context) error {
		return onPostgres(ctx, p.DSN("postgres"), func(conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, statement)
			return err
		})
	})
}

// WALStats counts what the server has written to its log since it was created.
type WALStats struct {
	Records  int64         // log records
	Bytes    int64         // bytes of log
	Syncs    int64         // fsyncs of the log: what durability costs
	SyncTime time.Duration // time spent in them
}

// WALStats reads pg_stat_wal. A session publishes its numbers when it ends, or at most once a second while it works, so
// close the sessions that are to be measured and poll.
func (p *Postgres) WALStats(tb testing.TB) WALStats {
	tb.Helper()
	var s WALStats
	call(tb, "read pg_stat_wal", func(ctx context.Context) error {
		return onPostgres(ctx, p.DSN("postgres"), func(conn *pgx.Conn) error {
			var milliseconds float64
			err := conn.QueryRow(ctx, "SELECT wal_records, wal_bytes::bigint, wal_sync, wal_sync_time FROM pg_stat_wal").
				Scan(&s.Records, &s.Bytes, &s.Syncs, &milliseconds)
			s.SyncTime = time.Duration(milliseconds * float64(time.Millisecond))
			return err
		})
	})
	return s
}
