package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"likectl/pkg/likes"
)

// transact runs f in a transaction of several statements until it is decided.
func (s *Store) transact(ctx context.Context, what string, f func(pgx.Tx) error) error {
	err := persist(ctx, func() error { return s.patiently(ctx, pgx.TxOptions{}, f) })
	var refused *refusedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return refused.err
	default:
		return s.writeErr(what, err)
	}
}

// ask runs a small read when it is its turn among the reads.
func (s *Store) ask(ctx context.Context, what string, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.admit(ctx); err != nil {
		return s.readErr(what, err)
	}
	defer s.leave()
	if err := persist(ctx, func() error { return f(ctx) }); err != nil {
		return s.readErr(what, err)
	}
	return nil
}

// noRow tells an answer without a row from a failure.
func noRow(err error) (bool, error) {
	if errors.Is(err, pgx.ErrNoRows) {
		return true, nil
	}
	return false, err
}

// Whoever inserts into a table holds this lock on it until the transaction ends,
// from before the statement's snapshot is taken: the server locks a plan's tables
// before it begins to execute it. So those who hold it now are all whose snapshots
// can be older than what was committed before. (CREATE INDEX CONCURRENTLY waits
// in the same way: WaitForLockers in the server's lmgr.c.) Unlike pg_stat_activity,
// pg_locks shows the sessions of every role, by whatever name they came, and
// leaves out those that only read. $1 is whom to wait for, null for all.
const writersSQL = `
select coalesce(array_agg(distinct virtualtransaction), '{}') from pg_locks
where locktype = 'relation' and database = (select oid from pg_database where datname = current_database())
and relation = 'edges'::regclass and mode = 'RowExclusiveLock' and granted
and ($1::text[] is null or virtualtransaction = any($1::text[]))`

// The pauses between two looks at transactions that are waited for.
const firstLook, lastLook = time.Millisecond, 100 * time.Millisecond

// settle returns when every transaction has ended that writes edges now: each
// that begins to write later sees the floors that are committed now. It waits for
// as long as a statement of this program can take.
func (s *Store) settle(ctx context.Context) error {
	const what = "wait for the writes under way"
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var writers []string
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		err := persist(ctx, func() error { return s.pool.QueryRow(ctx, writersSQL, writers).Scan(&writers) })
		if err != nil {
			return s.unsettled(what, len(writers), err)
		}
		if len(writers) == 0 {
			return nil
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return s.unsettled(what, len(writers), ctx.Err())
		case <-timer.C:
		}
	}
}

func (s *Store) unsettled(what string, writers int, err error) error {
	return likes.Errorf(likes.ErrUnavailable, "%s in %s: the erasure is recorded, but %d transactions that began to write before have not ended "+
		"(see pg_locks and pg_stat_activity); repeat it: %w", what, s.place, writers, attempt(err))
}
