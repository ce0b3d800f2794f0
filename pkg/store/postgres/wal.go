package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"likectl/pkg/likes"
)

// WAL reads how much a server has written to its log, for measurements. It is not
// safe for concurrent use.
type WAL struct {
	conn *pgx.Conn
}

// walTimeout bounds one reading, and the dialling.
const walTimeout = 5 * time.Second

// OpenWAL connects for readings.
func OpenWAL(ctx context.Context, dsn string) (*WAL, error) {
	ctx, cancel := context.WithTimeout(ctx, walTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, likes.Errorf(likes.ErrUnavailable, "read the server's log: %w", err)
	}
	return &WAL{conn: conn}, nil
}

// walSQL: what is inserted, not only what is flushed, is on its way to disk. The
// number of flushes is that of all sessions; where the server's statistics have
// another form (pg_stat_wal of Postgres 14 to 17 has it) it is -1.
const walSQL = `
select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint, coalesce((to_jsonb(w) ->> 'wal_sync')::bigint, -1)
from pg_stat_wal w`

// Read returns the bytes that the server has ever written to its log, and how often
// it has flushed it since its statistics were reset, -1 if unknown.
func (w *WAL) Read(ctx context.Context) (bytes, flushes int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, walTimeout)
	defer cancel()
	if err := w.conn.QueryRow(ctx, walSQL).Scan(&bytes, &flushes); err != nil {
		return 0, 0, fmt.Errorf("read the server's log: %w", err)
	}
	return bytes, flushes, nil
}

// Close closes the connection.
func (w *WAL) Close(ctx context.Context) error { return w.conn.Close(ctx) }
