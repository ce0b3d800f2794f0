package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

// A step locks as a batch of writes does: edges in key order, then counters in
// key order. Nobody else locks the user's own edges: writers that could have are
// gone, and erasers take turns at the record.
const (
	takeSQL = `
with v as materialized (
	select counter, item_type, item_id from edges where user_id = $1::bigint
	order by counter, item_type, item_id desc limit $2::bigint),
gone as (
	delete from edges e using (select * from v order by counter, item_type, item_id) v
	where e.counter = v.counter and e.item_type = v.item_type and e.item_id = v.item_id and e.user_id = $1
	returning e.counter, e.item_type, e.item_id, e.clock, e.liked_at, e.liked),`

	lowerSQL = `
c as (
	insert into counters as c (counter, item_type, item_id, count, version)
	select counter, item_type, item_id, n, 1 from d where n <> 0
	on conflict (counter, item_type, item_id) do update set count = c.count + excluded.count, version = c.version + 1)
select count(*) filter (where liked), count(*) filter (where not liked) from gone`

	eraseSQL = takeSQL + `
d as materialized (
	select counter, item_type, item_id, -1 as n from gone where liked order by 1, 2, 3),` + lowerSQL

	// The conflict is likes.Register.Union: the clock moves on where the older
	// register is liked and the newer one is not, or not for as long. Of an edge
	// that both liked, the count loses one.
	mergeSQL = takeSQL + `
up as (
	insert into edges as e (counter, item_type, item_id, user_id, clock, liked_at, liked, was)
	select counter, item_type, item_id, $3::bigint, clock, liked_at, liked, false
	from (select * from gone order by counter, item_type, item_id) g
	on conflict (counter, item_type, item_id, user_id) do update set was = e.liked, liked = e.liked or excluded.liked,
		liked_at = case when e.liked and excluded.liked then least(e.liked_at, excluded.liked_at)
			when e.liked then e.liked_at else excluded.liked_at end,
		clock = greatest(e.clock, excluded.clock) + 4096 *
			case when excluded.clock > e.clock or (excluded.clock = e.clock and not excluded.liked)
			then (e.liked and not (excluded.liked and excluded.liked_at <= e.liked_at))::int
			else (excluded.liked and not (e.liked and e.liked_at <= excluded.liked_at))::int end
	returning counter, item_type, item_id, liked, was),
d as materialized (
	select counter, item_type, item_id, sum(n) as n
	from (select counter, item_type, item_id, liked::int - was::int as n from up
		union all select counter, item_type, item_id, -(liked::int) from gone) steps
	group by 1, 2, 3 order by 1, 2, 3),` + lowerSQL

	addToErasureSQL = `
update erasures set edges = edges + $2, tombstones = tombstones + $3, relations = relations + $4 where user_hash = $1::uuid`

	finishErasureSQL = `
update erasures set finished_at = clock_timestamp(), user_id = null, into_id = null where user_hash = $1::uuid`
)

// relationsSQL takes up to $2 relations of user $1 each, gives them to user $3
// unless that is 0, and counts them. What would relate that user to itself is
// dropped.
func relationsSQL() []string {
	pair := func(table, one, other string) string {
		return fmt.Sprintf(`
with gone as (
	delete from %[1]s t using (select %[2]s, %[3]s from %[1]s where %[2]s = $1::bigint limit $2::bigint) v
	where t.%[2]s = v.%[2]s and t.%[3]s = v.%[3]s returning t.%[3]s as other),
put as (
	insert into %[1]s (%[2]s, %[3]s) select $3::bigint, other from gone where $3 > 0 and other not in ($1, $3) on conflict do nothing)
select count(*) from gone`, table, one, other)
	}
	return []string{
		pair("blocks", "blocker_id", "blocked_id"),
		pair("blocks", "blocked_id", "blocker_id"),
		pair("follows", "follower_id", "followee_id"),
		pair("follows", "followee_id", "follower_id"),
		`
with gone as (
	delete from item_blocks t using (select item_type, item_id from item_blocks where blocked_id = $1::bigint limit $2::bigint) v
	where t.item_type = v.item_type and t.item_id = v.item_id and t.blocked_id = $1 returning t.item_type, t.item_id),
put as (
	insert into item_blocks (item_type, item_id, blocked_id)
	select item_type, item_id, $3::bigint from gone where $3 > 0 on conflict do nothing)
select count(*) from gone`,
		`
with given as (
	update items t set owner_id = $3::bigint
	from (select item_type, item_id from items where owner_id = $1::bigint and owner_id > 0 limit $2::bigint) v
	where t.item_type = v.item_type and t.item_id = v.item_id and t.owner_id = $1 returning 1)
select count(*) from given`,
	}
}

// StepErase implements [store.People] with one transaction, and one more for the
// end: before an erasure is finished no write may be under way that began before
// it, and who began it may have died waiting for them.
func (s *Store) StepErase(ctx context.Context, user likes.UserID, limit int) (store.Erasure, error) {
	if err := store.CheckStep(limit); err != nil {
		return store.Erasure{}, err
	}
	e, empty, err := s.stepErase(ctx, user, limit, false)
	if err != nil || !empty {
		return e, err
	}
	if err := s.settle(ctx); err != nil {
		return store.Erasure{}, err
	}
	e, _, err = s.stepErase(ctx, user, limit, true)
	return e, err
}

// stepErase does one step and says whether nothing is left of an erasure that is
// not finished; if settled, it finishes it then.
func (s *Store) stepErase(ctx context.Context, user likes.UserID, limit int, settled bool) (e store.Erasure, empty bool, err error) {
	err = s.transact(ctx, "erase a user's likes", func(tx pgx.Tx) error {
		empty = false
		row, begun, err := s.erasure(ctx, tx, user, " for update")
		if err != nil {
			return err
		}
		if !begun {
			return &refusedError{store.ErrNotBegun(user)}
		}
		e = row.Erasure
		if !e.Finished.IsZero() {
			return nil
		}
		done, err := take(ctx, tx, user, row.into, limit)
		if err != nil {
			return err
		}
		e.Edges, e.Tombstones, e.Relations = e.Edges+done.Edges, e.Tombstones+done.Tombstones, e.Relations+done.Relations
		hash := [16]byte(e.User)
		if done.Any() {
			if _, err := tx.Exec(ctx, addToErasureSQL, hash, done.Edges, done.Tombstones, done.Relations); err != nil {
				return err
			}
		}
		if done.Edges+done.Tombstones+done.Relations >= int64(limit) {
			return nil
		}
		// Others may have changed relations meanwhile: fewer rows than asked for do
		// not say that there are no more.
		rest, err := remains(ctx, tx, user)
		empty = !rest.Any()
		if err != nil || !empty || !settled {
			return err
		}
		if _, err := tx.Exec(ctx, finishErasureSQL, hash); err != nil {
			return err
		}
		row, _, err = s.erasure(ctx, tx, user, "")
		e = row.Erasure
		return err
	})
	if err != nil {
		return store.Erasure{}, false, err
	}
	return e, empty, nil
}

// take takes up to limit rows from the user, edges first, and gives them to
// another one unless that is 0.
func take(ctx context.Context, tx pgx.Tx, user, into likes.UserID, limit int) (done store.Remains, err error) {
	query, args := eraseSQL, []any{user, limit}
	if into != 0 {
		query, args = mergeSQL, append(args, into)
	}
	if err := tx.QueryRow(ctx, query, args...).Scan(&done.Edges, &done.Tombstones); err != nil {
		return done, err
	}
	left := int64(limit) - done.Edges - done.Tombstones
	for _, query := range relationsSQL() {
		if left == 0 {
			break
		}
		var n int64
		if err := tx.QueryRow(ctx, query, user, left, into).Scan(&n); err != nil {
			return done, err
		}
		done.Relations += n
		left -= n
	}
	return done, nil
}
