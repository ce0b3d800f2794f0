package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

// auditTimeout bounds one step of an audit and one repair. An item's edges must
// be counted in one snapshot, about a second for a million of them, so the
// timeout of the small statements does not fit.
const auditTimeout = 10 * time.Minute

const (
	// walkSQL finds the next keys one by one: each is the least of the next
	// counter of each set and the next item with edges, found by one descent of
	// a primary key each, so that an item with a million edges costs as much to
	// pass as one with a single edge, and the tallies between the sets nothing. The
	// set is compared alone, the rest of the key as a row: with the set in the row
	// too, the index would be read from the set's beginning every time.
	// $1 to $3 is the key to start after, $4 how many keys, $5 the set counters.
	walkSQL = `
with recursive step(counter, item_type, item_id, n) as (
	select $1::smallint, $2::smallint, $3::bigint, 0
	union all
	select x.counter, x.item_type, x.item_id, s.n + 1
	from step s cross join lateral (
		select * from (
			(select c.* from unnest($5::smallint[]) as sets(id) cross join lateral (
				select counter, item_type, item_id from counters
				where counter = sets.id and (item_type, item_id) >
					(case when sets.id = s.counter then s.item_type else 0 end, case when sets.id = s.counter then s.item_id else 0 end)
				order by counter, item_type, item_id limit 1) c
			 where sets.id >= s.counter)
			union all
			(select counter, item_type, item_id from edges
			 where (counter, item_type, item_id) > (s.counter, s.item_type, s.item_id)
			 order by counter, item_type, item_id limit 1)) both_tables
		order by counter, item_type, item_id limit 1) x
	where s.n < $4::bigint),
k as (select counter, item_type, item_id from step where n > 0)`

	// keysSQL leaves out keys with neither counter nor like: there is nothing to
	// compare.
	keysSQL = `
with k as (
	select * from unnest($1::smallint[], $2::smallint[], $3::bigint[]) as i(counter, item_type, item_id)
	where exists (select from counters c where c.counter = i.counter and c.item_type = i.item_type and c.item_id = i.item_id)
	or exists (select from edges e where e.counter = i.counter and e.item_type = i.item_type and e.item_id = i.item_id and e.liked))`

	// compareSQL counts beside reading the counter: one statement, one snapshot.
	compareSQL = `
select k.counter, k.item_type, k.item_id, coalesce(c.count, 0), c.count is null,
	(select count(*) from edges e
	 where e.counter = k.counter and e.item_type = k.item_type and e.item_id = k.item_id and e.liked)
from k left join counters c on c.counter = k.counter and c.item_type = k.item_type and c.item_id = k.item_id
order by 1, 2, 3`

	// repairSQL measures in its snapshot and adds to the counter as it is by
	// then. Writers that commit in between change the counter and the edges by
	// the same number, so what is missing is missing still.
	repairSQL = `
with m as materialized (
	select (select count(*) from edges where counter = $1::smallint and item_type = $2::smallint and item_id = $3::bigint and liked) as edges,
		(select count from counters where counter = $1 and item_type = $2 and item_id = $3) as stored),
fix as (
	insert into counters as c (counter, item_type, item_id, count, version)
	select $1, $2, $3, edges - coalesce(stored, 0), 1 from m where edges <> coalesce(stored, 0)
	on conflict (counter, item_type, item_id) do update set count = c.count + excluded.count, version = c.version + 1)
select edges, coalesce(stored, 0), stored is null from m`
)

// Audit implements [store.Auditor]. The step's snapshot is held until it ends:
// prefer many steps to large ones.
func (s *Store) Audit(ctx context.Context, after store.Key, limit int) (store.Audit, error) {
	if limit < 1 {
		return store.Audit{}, likes.Errorf(likes.ErrInvalid, "an audit of %d counters, want 1 or more", limit)
	}
	a, last, err := s.compare(ctx, walkSQL+compareSQL,
		int16(after.Counter), int16(after.Item.Type), int64(after.Item.ID), limit, setCounters())
	if err == nil && a.Checked == limit {
		a.Next = last
	}
	return a, err
}

// setCounters returns the numbers of the counters that are derived from edges.
func setCounters() []int16 {
	sets := likes.SetCounters()
	numbers := make([]int16, len(sets))
	for i, c := range sets {
		numbers[i] = int16(c)
	}
	return numbers
}

// AuditItem implements [store.Auditor].
func (s *Store) AuditItem(ctx context.Context, keys []store.Key) (store.Audit, error) {
	if err := store.CheckAudit(keys...); err != nil {
		return store.Audit{}, err
	}
	if len(keys) == 0 {
		return store.Audit{}, nil
	}
	counters, types, items := make([]int16, len(keys)), make([]int16, len(keys)), make([]int64, len(keys))
	for i, k := range keys {
		counters[i], types[i], items[i] = int16(k.Counter), int16(k.Item.Type), int64(k.Item.ID)
	}
	a, _, err := s.compare(ctx, keysSQL+compareSQL, counters, types, items)
	return a, err
}

// compare collects the drifts of one statement and the last key compared.
func (s *Store) compare(ctx context.Context, query string, args ...any) (a store.Audit, last store.Key, err error) {
	err = s.patiently(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		var d store.Drift
		_, err = pgx.ForEachRow(rows, []any{&d.Counter, &d.Item.Type, &d.Item.ID, &d.Stored, &d.Missing, &d.Edges}, func() error {
			a.Checked++
			last = d.Key
			if d.Stored != d.Edges {
				a.Drifts = append(a.Drifts, d)
			}
			return nil
		})
		return err
	})
	if err != nil {
		return store.Audit{}, store.Key{}, s.readErr("audit", err)
	}
	return a, last, nil
}

// Repair implements [store.Auditor]. The advisory lock comes before the
// statement that measures, so that it sees what the repair before has added.
func (s *Store) Repair(ctx context.Context, k store.Key) (store.Drift, error) {
	if err := store.CheckAudit(k); err != nil {
		return store.Drift{}, err
	}
	d := store.Drift{Key: k}
	err := s.patiently(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		name := fmt.Sprintf("likectl repair %d/%d/%d", k.Counter, k.Item.Type, k.Item.ID)
		if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock(hashtextextended($1, 0))", name); err != nil {
			return fmt.Errorf("wait for other repairs: %w", err)
		}
		return tx.QueryRow(ctx, repairSQL, int16(k.Counter), int16(k.Item.Type), int64(k.Item.ID)).
			Scan(&d.Edges, &d.Stored, &d.Missing)
	})
	if err != nil {
		return store.Drift{}, s.writeErr(fmt.Sprintf("repair the counter of %s item %d:%d", k.Counter, k.Item.Type, k.Item.ID), err)
	}
	return d, nil
}

// patiently runs f in a transaction with the timeout of audits. What fails
// before the commit is sent has surely not happened.
func (s *Store) patiently(ctx context.Context, options pgx.TxOptions, f func(pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, auditTimeout+grace)
	defer cancel()
	if err := s.admit(ctx); err != nil {
		return err
	}
	defer s.leave()
	tx, err := s.pool.BeginTx(ctx, options)
	if err != nil {
		return &unsentError{err}
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // after a commit it does nothing
	if _, err := tx.Exec(ctx, fmt.Sprintf("set local statement_timeout = %d", auditTimeout.Milliseconds())); err != nil {
		return &unsentError{err}
	}
	if err := f(tx); err != nil {
		return &unsentError{err}
	}
	return tx.Commit(ctx)
}

// estimateSQL is the size of the table, less the share of it that the statistics
// give to tallies. So few values are always among the most common ones.
const estimateSQL = `
select (greatest(reltuples, 0) * coalesce((
	select sum(share) from pg_stats, unnest(most_common_vals::text::int[], most_common_freqs) as m(value, share)
	where schemaname = current_schema() and tablename = 'counters' and attname = 'counter' and value = any($1::int[])), 1))::bigint
from pg_class where oid = 'counters'::regclass`

// Estimate implements [store.Auditor] from the planner's statistics.
func (s *Store) Estimate(ctx context.Context) (n int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	err = s.pool.QueryRow(ctx, estimateSQL, setCounters()).Scan(&n)
	if err != nil {
		return 0, s.readErr("estimate the audit", err)
	}
	return n, nil
}
