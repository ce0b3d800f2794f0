package postgres

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/userhash"
)

// Store keeps edges and counters in one Postgres database.
type Store struct {
	pool    *pgxpool.Pool
	place   string
	epoch   likes.Epoch
	hashKey userhash.Key  // of erased users' hashes
	timeout time.Duration // of one call, including its retries
	server  serverClock
	reading chan struct{} // holds a value per read in flight; its size is what writes leave
	params  sync.Pool     // of *params
}

var (
	_ store.Edges     = (*Store)(nil)
	_ store.Tallies   = (*Store)(nil)
	_ store.Auditor   = (*Store)(nil)
	_ store.Walker    = (*Store)(nil)
	_ store.ItemTypes = (*Store)(nil)
	_ store.People    = (*Store)(nil)
)

// Open connects to the database, which must have the schema of this program
// ([SchemaUp]) on a server that keeps what it acknowledges. Close the store when
// done with it.
func Open(ctx context.Context, c Config) (*Store, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	config, err := c.pool()
	if err != nil {
		return nil, err
	}
	s := &Store{
		place: place(config.ConnConfig), timeout: c.StatementTimeout + grace,
		reading: make(chan struct{}, int(config.MaxConns)-c.Writers), server: serverClock{started: time.Now()},
	}
	s.params.New = func() any { return new(params) }
	if err := s.inspect(ctx, c, config.ConnConfig.Copy()); err != nil {
		return nil, fmt.Errorf("open %s: %w", s.place, err)
	}
	setup := sessionSQL(c.StatementTimeout)
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if err := prepare(ctx, conn, setup); err != nil {
			return err
		}
		return s.observe(ctx, conn)
	}
	s.pool, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", s.place, err)
	}
	if err := s.pool.Ping(ctx); err != nil {
		s.pool.Close()
		return nil, fmt.Errorf("open %w", s.readErr("a session", err))
	}
	return s, nil
}

// inspect looks at the database over a plain connection before any session is
// set up for it.
func (s *Store) inspect(ctx context.Context, c Config, config *pgx.ConnConfig) error {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return likes.Errorf(likes.ErrUnavailable, "%w", attempt(err))
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := checkSchema(ctx, conn, cmp.Or(c.SchemaUp, "likectl schema up")); err != nil {
		return err
	}
	if err := conn.QueryRow(ctx, "select epoch, user_hash_key from likectl_meta").Scan(&s.epoch, (*[16]byte)(&s.hashKey)); err != nil {
		return fmt.Errorf("read likectl_meta: %w", err)
	}
	found, err := durability(ctx, conn)
	if err != nil {
		return fmt.Errorf("check durability: %w", err)
	}
	return c.refuseUnsafe(ctx, found)
}

// Close waits for the calls in flight and closes all connections.
func (s *Store) Close() error {
	s.pool.Close()
	return nil
}

// Now reads the server's clock. It does not queue behind reads: it is also the
// sign of life that decides whether this instance gets requests.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := s.query(ctx, "read the clock", nowStatement, func(*params) {}, func(row [][]byte) {
		now = timestamp(row[0])
	})
	if err == nil {
		s.server.read(now)
	}
	return now, err
}

// sessionSQL is what every connection starts with. synchronous_commit becomes
// on, unless the server waits for even more.
func sessionSQL(timeout time.Duration) string {
	return fmt.Sprintf(`
		set default_transaction_isolation = 'read committed';
		set statement_timeout = %[1]d;
		set idle_in_transaction_session_timeout = %[1]d;
		set plan_cache_mode = force_generic_plan;
		set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off;
		set max_parallel_workers_per_gather = 0;
		set jit = off;
		select set_config('synchronous_commit', case current_setting('synchronous_commit')
			when 'remote_apply' then 'remote_apply' else 'on' end, false)`, timeout.Milliseconds())
}

func prepare(ctx context.Context, conn *pgx.Conn, setup string) error {
	if _, err := conn.PgConn().Exec(ctx, setup).ReadAll(); err != nil {
		return fmt.Errorf("set up the session: %w", err)
	}
	for _, s := range statements() {
		if _, err := conn.Prepare(ctx, s.name, s.sql); err != nil {
			return fmt.Errorf("prepare %s: %w", s.name, err)
		}
	}
	return nil
}

// timestamp decodes a timestamptz: microseconds since 2000.
func timestamp(b []byte) time.Time {
	return time.UnixMicro(int64(binary.BigEndian.Uint64(b)) + epoch2000).UTC() //nolint:gosec // the bits are the number
}
