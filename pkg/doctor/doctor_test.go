package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"likectl/pkg/config"
	"likectl/pkg/datadir"
	"likectl/pkg/store/postgres"
	"likectl/pkg/store/sqlite"
	containers "likectl/testcontainers"
)

func TestMain(m *testing.M) { containers.Main(m) }

// embedded returns a configuration with a data folder as a server leaves it.
func embedded(t *testing.T) config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.Data = filepath.Join(t.TempDir(), "data")
	dir, err := datadir.Open(cfg.Data)
	require.NoError(t, err)
	db, err := sqlite.Open(t.Context(), dir.Database())
	require.NoError(t, err)
	require.NoError(t, db.Close())
	require.NoError(t, dir.Close())
	return cfg
}

// states returns the state of each check.
func states(t *testing.T, r *Report) map[string]State {
	t.Helper()
	all := make(map[string]State)
	for _, f := range r.Findings {
		require.NotEmpty(t, f.Found, f.Check)
		require.NotEmpty(t, f.Means, f.Check)
		require.Equal(t, f.State != OK, f.Do != "", "%s: what is not OK says what to do", f.Check)
		require.NotContains(t, all, f.Check)
		all[f.Check] = f.State
	}
	return all
}

// worse returns the checks that are not OK.
func worse(t *testing.T, r *Report) map[string]State {
	t.Helper()
	all := states(t, r)
	for check, s := range all {
		if s == OK {
			delete(all, check)
		}
	}
	return all
}

func TestAGoodFolderIsOK(t *testing.T) {
	r := Run(t.Context(), embedded(t), 1)
	require.Equal(t, map[string]State{
		"data folder": OK, "secret": OK, "disk": OK, "open files": OK, "sqlite": OK, "sqlite schema": OK,
	}, states(t, r))
	require.Equal(t, 6, r.Count(OK))
	require.Zero(t, r.Count(Fail))
}

func TestAFolderThatIsNotThereIsNotMade(t *testing.T) {
	cfg := config.Default()
	cfg.Data = filepath.Join(t.TempDir(), "a", "b")
	require.Empty(t, worse(t, Run(t.Context(), cfg, 1)))
	require.NoDirExists(t, filepath.Dir(cfg.Data))
}

func TestFaultsOfTheMachine(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, cfg *config.Config)
		want  map[string]State
	}{
		"folder open to others": {
			func(t *testing.T, cfg *config.Config) { require.NoError(t, os.Chmod(cfg.Data, 0o755)) },
			map[string]State{"data folder": Warn},
		},
		"folder is a file": {
			func(_ *testing.T, cfg *config.Config) { cfg.Data = filepath.Join(cfg.Data, "secret") },
			map[string]State{"data folder": Fail},
		},
		"secret open to others": {
			func(t *testing.T, cfg *config.Config) {
				require.NoError(t, os.Chmod(filepath.Join(cfg.Data, "secret"), 0o644))
			},
			map[string]State{"secret": Fail},
		},
		"half a secret": {
			func(t *testing.T, cfg *config.Config) {
				require.NoError(t, os.Truncate(filepath.Join(cfg.Data, "secret"), 16))
			},
			map[string]State{"secret": Fail},
		},
		"database open to others": {
			func(t *testing.T, cfg *config.Config) {
				require.NoError(t, os.Chmod(filepath.Join(cfg.Data, "likes.db"), 0o640))
			},
			map[string]State{"sqlite file": Warn},
		},
		"not a database": {
			func(t *testing.T, cfg *config.Config) {
				require.NoError(t, os.WriteFile(filepath.Join(cfg.Data, "likes.db"), make([]byte, 5000), 0o600))
			},
			map[string]State{"sqlite": Fail},
		},
		"too few files": {
			func(_ *testing.T, cfg *config.Config) { cfg.HTTP.MaxConnections = 1 << 40 },
			map[string]State{"open files": Warn},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := embedded(t)
			c.spoil(t, &cfg)
			require.Equal(t, c.want, worse(t, Run(t.Context(), cfg, 1)))
		})
	}
}

func TestSpaceRunsOut(t *testing.T) {
	onDisk, elsewhere := config.Default(), config.Default()
	elsewhere.Postgres.DSN = "postgres://h/d"
	for _, c := range []struct {
		cfg  config.Config
		free uint64
		want State
	}{
		{onDisk, lowSpace, OK},
		{onDisk, lowSpace - 1, Warn},
		{onDisk, noSpace - 1, Fail},
		{elsewhere, noSpace - 1, OK},
		{elsewhere, 1000, Fail},
	} {
		r := &Report{}
		r.space(c.cfg, datadir.Info{Free: c.free, Size: 1 << 40})
		require.Equal(t, map[string]State{"disk": c.want}, states(t, r), c.free)
	}
}

func TestBesideARunningServer(t *testing.T) {
	cfg := embedded(t)
	dir, err := datadir.Open(cfg.Data)
	require.NoError(t, err)
	r := Run(t.Context(), cfg, 1)
	require.Empty(t, worse(t, r))
	require.Contains(t, r.Findings[len(r.Findings)-1].Found, "open in process")
	require.NoError(t, dir.Close())
}

func remote(t *testing.T, dsn string) config.Config {
	t.Helper()
	cfg := embedded(t)
	cfg.Postgres.DSN = config.Secret(dsn)
	return cfg
}

func migrated(t *testing.T, server *containers.Postgres) string {
	t.Helper()
	return server.MigratedDatabase(t, "likectl_schema", func(ctx context.Context, dsn string) error {
		_, err := postgres.SchemaUp(ctx, dsn)
		return err
	})
}

func TestPostgres(t *testing.T) {
	server := containers.SharedPostgres(t)
	cfg := remote(t, migrated(t, server))
	r := Run(t.Context(), cfg, 2)
	all := states(t, r)
	require.Equal(t, Warn, all["postgres copies"], "a single server")
	delete(all, "postgres copies")
	// Of a server that all tests share it is not known who else is connected.
	delete(all, "postgres connections")
	delete(all, "postgres transactions")
	require.Equal(t, map[string]State{
		"data folder": OK, "secret": OK, "disk": OK, "open files": OK, "postgres": OK, "postgres schema": OK, "clock": OK,
		"postgres fsync": OK, "postgres full_page_writes": OK, "postgres synchronous_commit": OK, "postgres server_version_num": OK,
		"table edges": OK, "table counters": OK,
	}, all)

	require.Equal(t, Fail, states(t, Run(t.Context(), cfg, 500))["postgres connections"])
	cfg.Postgres.MaxConns = 3
	require.Equal(t, Warn, states(t, Run(t.Context(), cfg, 1))["postgres.max_conns"])
	cfg.Postgres.DSN = config.Secret(server.Database(t))
	require.Equal(t, Fail, states(t, Run(t.Context(), cfg, 1))["postgres schema"], "no tables")
	cfg.Postgres.DSN = "postgres://u:hunter2@127.0.0.1:1/x"
	r = Run(t.Context(), cfg, 1)
	require.Equal(t, map[string]State{"postgres": Fail}, worse(t, r))
	require.NotContains(t, r.Findings[4].Found, "hunter2")
}

func TestAnUnsafePostgres(t *testing.T) {
	server := containers.StartPostgres(t, "fsync=off", "autovacuum=off", "synchronous_standby_names=gone", "synchronous_commit=local")
	cfg := remote(t, migrated(t, server))
	want := map[string]State{"postgres fsync": Fail, "postgres copies": Fail, "postgres autovacuum": Warn}
	require.Equal(t, want, worse(t, Run(t.Context(), cfg, 1)))
	cfg.Postgres.AllowUnsafe = true
	want["postgres fsync"] = Warn
	require.Equal(t, want, worse(t, Run(t.Context(), cfg, 1)))

	conn, err := pgx.Connect(t.Context(), cfg.Postgres.DSN.Reveal())
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	_, err = conn.Exec(t.Context(), fmt.Sprintf("alter database %q set default_transaction_read_only = on", conn.Config().Database))
	require.NoError(t, err)
	require.Equal(t, Fail, worse(t, Run(t.Context(), cfg, 1))["postgres role"])
}

func TestTables(t *testing.T) {
	good := postgres.TableHealth{Name: "edges", Live: 1_000_000, Dead: 200_000, Autovacuum: true, Age: 200_000_000}
	bloated, small, old, off := good, good, good, good
	bloated.Dead = 900_000
	small.Live, small.Dead = 10, 90_000
	old.Age = 2_000_000_000
	off.Autovacuum = false
	for _, c := range []struct {
		table postgres.TableHealth
		want  State
	}{{good, OK}, {bloated, Warn}, {small, OK}, {old, Warn}, {off, Warn}} {
		r := &Report{}
		r.vacuum(&postgres.Inspection{Autovacuum: true, Tables: []postgres.TableHealth{c.table}})
		require.Equal(t, map[string]State{"table edges": c.want}, states(t, r))
	}
	r := &Report{}
	r.vacuum(&postgres.Inspection{Autovacuum: true, Longest: time.Hour})
	require.Equal(t, map[string]State{"postgres transactions": Warn}, states(t, r))
}

func TestCopies(t *testing.T) {
	for _, c := range []struct {
		found postgres.Inspection
		want  State
	}{
		{postgres.Inspection{}, Warn},
		{postgres.Inspection{Archiving: true}, OK},
		{postgres.Inspection{Replicas: 1}, OK},
		{postgres.Inspection{Replicas: 1, Synchronous: 1, Standbys: "a"}, OK},
		{postgres.Inspection{Standbys: "a"}, Fail},
	} {
		r := &Report{}
		r.copies(&c.found)
		require.Equal(t, map[string]State{"postgres copies": c.want}, states(t, r))
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 1023: "1023 bytes", 1024: "1.0 KiB", 1 << 40: "1.0 TiB", 1 << 62: "4096.0 PiB"} {
		require.Equal(t, want, size(n))
	}
}
