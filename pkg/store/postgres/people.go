package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

const (
	eraseLockSQL = "select pg_advisory_xact_lock(hashtextextended('likectl erase', 0))"

	// begunSQL reads what there is already of some users: their erasures and that
	// others are being merged into them.
	begunSQL = `
select u.id, e.user_hash is not null, coalesce(e.merged, false), coalesce(e.into_id, 0),
	exists (select from erasures r where r.finished_at is null and r.into_id = u.id)
from unnest($1::bigint[], $2::uuid[]) with ordinality as u(id, hash, n)
left join erasures e on e.user_hash = u.hash
order by n`

	beginEraseSQL = `
insert into erasures (user_hash, begun_at, user_id, into_id, merged)
select hash, clock_timestamp(), id, nullif($3::bigint, 0), $3::bigint <> 0 from unnest($1::bigint[], $2::uuid[]) as u(id, hash)
on conflict (user_hash) do nothing`

	erasureSQL = `
select begun_at, finished_at, merged, edges, tombstones, relations, coalesce(into_id, 0) from erasures where user_hash = $1::uuid`

	unfinishedSQL = `
select user_id from erasures where finished_at is null order by begun_at, user_hash limit $1::bigint`

	// A relation of a user to itself is one row.
	remainsSQL = `
select count(*) filter (where liked), count(*) filter (where not liked),
	(select count(*) from blocks where blocker_id = $1::bigint)
	+ (select count(*) from blocks where blocked_id = $1 and blocker_id <> $1)
	+ (select count(*) from item_blocks where blocked_id = $1)
	+ (select count(*) from follows where follower_id = $1)
	+ (select count(*) from follows where followee_id = $1 and follower_id <> $1)
	+ (select count(*) from items where owner_id = $1 and owner_id > 0)
from edges where user_id = $1`
)

// HashUser implements [store.People].
func (s *Store) HashUser(user likes.UserID) store.UserHash { return s.hashKey.Hash(user) }

// BeginErase implements [store.People]. Concurrent calls take turns, so that
// nobody who receives a user's likes is erased at the same time.
func (s *Store) BeginErase(ctx context.Context, users []likes.UserID, into likes.UserID) error {
	if err := store.CheckErase(users, into); err != nil {
		return err
	}
	if len(users) == 0 {
		return nil
	}
	what := fmt.Sprintf("begin to erase %d users", len(users))
	if err := s.transact(ctx, what, func(tx pgx.Tx) error { return s.beginErase(ctx, tx, users, into) }); err != nil {
		return err
	}
	return s.settle(ctx)
}

func (s *Store) beginErase(ctx context.Context, tx pgx.Tx, users []likes.UserID, into likes.UserID) error {
	if _, err := tx.Exec(ctx, eraseLockSQL); err != nil {
		return fmt.Errorf("wait for others: %w", err)
	}
	if into != 0 {
		if _, there, err := s.erasure(ctx, tx, into, ""); err != nil {
			return err
		} else if there {
			return &refusedError{store.ErrGone(into)}
		}
	}
	hashes := make([][16]byte, len(users))
	for i, user := range users {
		hashes[i] = s.HashUser(user)
	}
	rows, err := tx.Query(ctx, begunSQL, users, hashes)
	if err != nil {
		return err
	}
	already, err := pgx.CollectRows(rows, pgx.RowToStructByPos[begunRow])
	if err != nil {
		return err
	}
	for _, a := range already {
		switch {
		case a.There:
			if err := store.CheckBegun(a.User, store.Erasure{Merged: a.Merged}, a.Into, into); err != nil {
				return &refusedError{err}
			}
		case a.Receives:
			return &refusedError{store.ErrReceives(a.User)}
		}
	}
	_, err = tx.Exec(ctx, beginEraseSQL, users, hashes, into)
	return err
}

// begunRow is a row of begunSQL.
type begunRow struct {
	User          likes.UserID
	There, Merged bool
	Into          likes.UserID
	Receives      bool
}

// refusedError rolls a transaction back whose caller asked for what cannot be.
type refusedError struct{ err error }

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

// querier is a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// erasureRow is a record and whom the user is merged into.
type erasureRow struct {
	store.Erasure
	into likes.UserID
}

// erasure reads a user's record, with a lock if lock says so.
func (s *Store) erasure(ctx context.Context, db querier, user likes.UserID, lock string) (e erasureRow, there bool, err error) {
	e.User = s.HashUser(user)
	var finished *time.Time
	err = db.QueryRow(ctx, erasureSQL+lock, [16]byte(e.User)).
		Scan(&e.Begun, &finished, &e.Merged, &e.Edges, &e.Tombstones, &e.Relations, &e.into)
	if none, err := noRow(err); none || err != nil {
		return erasureRow{}, false, err
	}
	e.Begun = e.Begun.UTC()
	if finished != nil {
		e.Finished = finished.UTC()
	}
	return e, true, nil
}

// Erasure implements [store.People].
func (s *Store) Erasure(ctx context.Context, user likes.UserID) (e store.Erasure, there bool, err error) {
	err = s.ask(ctx, "read an erasure", func(ctx context.Context) error {
		row, found, err := s.erasure(ctx, s.pool, user, "")
		e, there = row.Erasure, found
		return err
	})
	return e, there, err
}

// Unfinished implements [store.People], those that were begun first first.
func (s *Store) Unfinished(ctx context.Context, limit int) (users []likes.UserID, err error) {
	if err := store.CheckStep(limit); err != nil {
		return nil, err
	}
	err = s.ask(ctx, "read unfinished erasures", func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, unfinishedSQL, limit)
		if err != nil {
			return err
		}
		users, err = pgx.CollectRows(rows, pgx.RowTo[likes.UserID])
		return err
	})
	return users, err
}

// Remains implements [store.People].
func (s *Store) Remains(ctx context.Context, user likes.UserID) (rest store.Remains, err error) {
	err = s.patiently(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		rest, err = remains(ctx, tx, user)
		return err
	})
	if err != nil {
		return store.Remains{}, s.readErr("count a user's rows", err)
	}
	return rest, nil
}

func remains(ctx context.Context, db querier, user likes.UserID) (rest store.Remains, err error) {
	err = db.QueryRow(ctx, remainsSQL, user).Scan(&rest.Edges, &rest.Tombstones, &rest.Relations)
	return rest, err
}
