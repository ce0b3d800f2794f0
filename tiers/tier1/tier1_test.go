package tier1_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"likectl/pkg/auth"
	"likectl/pkg/batch"
	"likectl/pkg/clock"
	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/store/postgres"
	"likectl/pkg/store/sqlite"
	containers "likectl/testcontainers"
	"likectl/tiers"
	"likectl/tiers/tier1"
	"likectl/tiers/tiertest"
)

func TestMain(m *testing.M) {
	containers.Main(m,
		// pgx closes a broken connection in the background, for up to 15 s.
		goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgconn.(*PgConn).asyncClose.func1"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// The suites, each on both engines.

func TestPostgresConformance(t *testing.T) { tiertest.Run(t, onPostgres()) }
func TestPostgresMetamorphic(t *testing.T) { tiertest.Metamorphic(t, onPostgres()) }
func TestPostgresConcurrent(t *testing.T)  { tiertest.Concurrent(t, onPostgres()) }
func TestEmbeddedConformance(t *testing.T) { tiertest.Run(t, onSQLite()) }
func TestEmbeddedMetamorphic(t *testing.T) { tiertest.Metamorphic(t, onSQLite()) }
func TestEmbeddedConcurrent(t *testing.T)  { tiertest.Concurrent(t, onSQLite()) }

// The same through the API and its client.

func TestRemoteConformance(t *testing.T) {
	tiertest.Run(t, tiertest.Remote(onSQLite(), auth.Service))
}

func TestRemoteMetamorphic(t *testing.T) {
	tiertest.Metamorphic(t, tiertest.Remote(onSQLite(), auth.User))
}

// limits are small where that makes a fault show earlier.
var limits = tier1.Config{
	Issue:  batch.Config{Lanes: 2, MaxBatch: 64, MaxQueue: 4096, FlushTimeout: 4 * time.Second},
	Replay: batch.Config{Lanes: 1, MaxBatch: 256, MaxQueue: 4096, FlushTimeout: 4 * time.Second},
	Tally:  batch.Config{Lanes: 2, MaxBatch: 64, MaxQueue: 4096, FlushTimeout: 4 * time.Second},

	Retention: 24 * time.Hour,
}

// start runs one instance over an open store until the test ends or stop is
// called.
func start(tb testing.TB, edges tier1.Store, engine tiers.Engine, instance int) *tier1.Service {
	tb.Helper()
	s, err := tier1.Start(edges, clock.New(uint16(instance)), tiers.Contract(engine), limits, tier1.Hooks{})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, s.Close(context.Background())) })
	return s
}

// closeService stops an instance as a deployment would.
func closeService(ctx context.Context, s likes.Service) error {
	instance, ok := s.(*tier1.Service)
	if !ok {
		return fmt.Errorf("a %T in a cluster of tier 1", s)
	}
	return instance.Close(ctx)
}

func migrate(ctx context.Context, dsn string) error {
	_, err := postgres.SchemaUp(ctx, dsn)
	return err
}

func onPostgres() tiertest.Harness {
	return tiertest.Harness{Open: func(tb testing.TB, instances int) *tiertest.Cluster {
		server := containers.SharedPostgres(tb)
		dsn := server.MigratedDatabase(tb, "likectl_schema", migrate)
		connect := func(ctx context.Context) (*postgres.Store, error) {
			return postgres.Open(ctx, postgres.Config{DSN: dsn, MaxConns: 6, StatementTimeout: 3 * time.Second})
		}
		c := &tiertest.Cluster{}
		pools := make([]*postgres.Store, instances)
		instance := func(i int) likes.Service {
			db, err := connect(tb.Context())
			require.NoError(tb, err)
			tb.Cleanup(func() { require.NoError(tb, db.Close()) })
			pools[i], c.Auditor = db, db
			return start(tb, db, tiers.Postgres, i)
		}
		for i := range instances {
			c.Services = append(c.Services, instance(i))
		}
		c.Restart = func(ctx context.Context, i int) (likes.Service, error) {
			if err := closeService(ctx, c.Services[i]); err != nil {
				return nil, err
			}
			if err := pools[i].Close(); err != nil { // before the test ends: a long run restarts often
				return nil, err
			}
			return instance(i), nil
		}
		c.Drift = func(ctx context.Context, k store.Key, n int64) error {
			conn, err := pgx.Connect(ctx, dsn)
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close(ctx) }()
			tag, err := conn.Exec(ctx, driftSQL, n, k.Counter, k.Item.Type, k.Item.ID)
			if err == nil && tag.RowsAffected() != 1 {
				err = fmt.Errorf("%d counters of %v", tag.RowsAffected(), k)
			}
			return err
		}
		c.Faults = []tiertest.Fault{
			{Name: "Postgres paused", Start: func(context.Context) (func(context.Context) error, error) {
				server.Pause(tb)
				return func(context.Context) error { server.Unpause(tb); return nil }, nil
			}},
			{Name: "Postgres killed", Start: func(context.Context) (func(context.Context) error, error) {
				server.Kill(tb)
				return func(context.Context) error { server.Start(tb); return nil }, nil
			}},
		}
		return c
	}}
}

const driftSQL = `update counters set count = count + $1 where counter = $2 and item_type = $3 and item_id = $4`

// onSQLite opens instances over one open file: the embedded store belongs to one
// process, which may still run several services.
func onSQLite() tiertest.Harness {
	return tiertest.Harness{Open: func(tb testing.TB, instances int) *tiertest.Cluster {
		path := filepath.Join(tb.TempDir(), "likes.db")
		db, err := sqlite.Open(tb.Context(), path)
		require.NoError(tb, err)
		tb.Cleanup(func() { require.NoError(tb, db.Close()) })
		c := &tiertest.Cluster{Auditor: db}
		for i := range instances {
			s := start(tb, db, tiers.SQLite, i)
			c.Services = append(c.Services, s)
		}
		c.Restart = func(ctx context.Context, i int) (likes.Service, error) {
			if err := closeService(ctx, c.Services[i]); err != nil {
				return nil, err
			}
			s := start(tb, db, tiers.SQLite, i)
			return s, nil
		}
		beside, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
		require.NoError(tb, err)
		tb.Cleanup(func() { require.NoError(tb, beside.Close()) })
		c.Drift = func(ctx context.Context, k store.Key, n int64) error {
			_, err := beside.ExecContext(ctx, driftSQL, n, k.Counter, k.Item.Type, k.Item.ID)
			return err
		}
		return c
	}}
}
