package postgres

// The names of the prepared statements.
const (
	issueStatement     = "likectl_issue"
	replayStatement    = "likectl_replay"
	countsStatement    = "likectl_counts"
	registersStatement = "likectl_registers"
	likersStatement    = "likectl_likers"
	likedByStatement   = "likectl_liked_by"
	walkStatement      = "likectl_walk"
	addStatement       = "likectl_add"
	forgetStatement    = "likectl_forget"
	nowStatement       = "likectl_now"
)

type statement struct{ name, sql string }

// statements are prepared on every connection.
func statements() []statement {
	return []statement{
		{issueStatement, issueSQL},
		{replayStatement, replaySQL},
		{countsStatement, countsSQL},
		{registersStatement, registersSQL},
		{likersStatement, likersSQL},
		{likedByStatement, likedBySQL},
		{walkStatement, walkEdgesSQL},
		{addStatement, addSQL},
		{forgetStatement, forgetSQL},
		{nowStatement, "select clock_timestamp()"},
	}
}

// Both kinds of batches take parallel arrays: counters, item types, items,
// users, clocks, begins of likes, states, hashes of the users. Issued ones also
// take the clocks of restarted writes and the instant after which they must not
// begin.
const (
	// gone are the users of the batch who are erased: one look-up by hash for each
	// write, however many erasures there are. The condition on begun_at is always
	// true and only keeps the planner from the primary key, which it would prefer
	// since that spares it the table. A batch whose snapshot is older than an
	// erasure does not see it: see settle.
	insertSQL = `
with gone as materialized (
	select distinct w.u as user_id from unnest($4::bigint[], $8::uuid[]) as w(u, h)
	cross join lateral (select from erasures where user_hash = w.h and begun_at > '-infinity' offset 0) e),
up as (
	insert into edges as e (counter, item_type, item_id, user_id, clock, liked_at, liked, was)
	select c, t, i, u, k, a, l, false
	from unnest($1::smallint[], $2::smallint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::timestamptz[], $7::bool[])
		as w(c, t, i, u, k, a, l)
	where w.u not in (select user_id from gone)`

	// See inTime. The sub-select is evaluated once.
	inTimeSQL = `
	and (select clock_timestamp() <= $10::timestamptz)`

	conflictSQL = `
	on conflict (counter, item_type, item_id, user_id) do update set was = e.liked, liked = excluded.liked,`

	// 4096 is one microsecond of a clock: likes.Clock.Next. The clocks of
	// restarted writes (store.Write) name them here, where no other column can.
	issueRule = `
		clock = greatest(excluded.clock, e.clock + 4096),
		liked_at = case when e.liked and excluded.liked and excluded.clock <> all($9::bigint[]) then e.liked_at else excluded.liked_at end`

	// Of equal clocks the unlike wins: likes.Register.Replay.
	replayRule = `
		clock = excluded.clock, liked_at = excluded.liked_at
	where excluded.clock > e.clock or (excluded.clock = e.clock and e.liked and not excluded.liked)`

	// d is complete only when every edge is locked; c locks in its order.
	countersSQL = `
	returning counter, item_type, item_id, user_id, liked, was, clock),
d as materialized (
	select counter, item_type, item_id, sum(liked::int - was::int) as n
	from up group by 1, 2, 3 order by 1, 2, 3),
c as (
	insert into counters as c (counter, item_type, item_id, count, version)
	select counter, item_type, item_id, n, 1 from d where n <> 0
	on conflict (counter, item_type, item_id) do update set count = c.count + excluded.count, version = c.version + 1
	returning counter, item_type, item_id, count, version)`

	// The answer has a row per edge (with its old state and clock), a row per
	// counter (user 0, with count and version) and a row per erased user (counter
	// 0): joining them is left to the caller, who knows that the first two are
	// sorted.
	issueSQL = insertSQL + inTimeSQL + conflictSQL + issueRule + countersSQL + `,
k as (
	select f.counter, f.item_type, f.item_id, f.count, f.version
	from (select array_agg(counter) as c, array_agg(item_type) as t, array_agg(item_id) as i
		from d where n = 0 having count(*) > 0) same
	cross join lateral likectl_counts(same.c, same.t, same.i) f)
select counter, item_type, item_id, user_id, was, clock, 0::bigint from up
union all select counter, item_type, item_id, 0, false, count, version from c
union all select counter, item_type, item_id, 0, false, count, version from k` + goneRows

	replaySQL = insertSQL + conflictSQL + replayRule + countersSQL + `
select counter, item_type, item_id, user_id, was, clock, 0::bigint from up` + goneRows

	goneRows = `
union all select 0::smallint, 0::smallint, 0::bigint, user_id, false, 0::bigint, 0::bigint from gone`
)

// Adds to tallies take parallel arrays: counters, item types, items, events and
// when they are added.
const (
	// An insert that meets an event of a transaction in flight waits for its end;
	// then the event is there (and the insert does nothing) or it is not. So new
	// is exact, and d is complete only when every event is locked. The items
	// whose counters do not change are read as in issueSQL: an event that was
	// waited for is counted by now, but not in this statement's snapshot.
	addSQL = `
with w as (
	select * from unnest($1::smallint[], $2::smallint[], $3::bigint[], $4::uuid[], $5::timestamptz[]) as w(c, t, i, e, a)),
new as (
	insert into tally_events (counter, item_type, item_id, event_id, at)
	select c, t, i, e, a from w
	on conflict do nothing
	returning counter, item_type, item_id, event_id),
d as materialized (
	select counter, item_type, item_id, count(*) as n
	from new group by 1, 2, 3 order by 1, 2, 3),
c as (
	insert into counters as c (counter, item_type, item_id, count, version)
	select counter, item_type, item_id, n, 1 from d
	on conflict (counter, item_type, item_id) do update set count = c.count + excluded.count, version = c.version + 1
	returning counter, item_type, item_id, count, version),
k as (
	select f.counter, f.item_type, f.item_id, f.count, f.version
	from (select array_agg(c) as c, array_agg(t) as t, array_agg(i) as i
		from (select c, t, i from w except select counter, item_type, item_id from d) s having count(*) > 0) same
	cross join lateral likectl_counts(same.c, same.t, same.i) f)
select counter, item_type, item_id, event_id, 0::bigint, 0::bigint from new
union all select counter, item_type, item_id, null::uuid, count, version from c
union all select counter, item_type, item_id, null::uuid, count, version from k`

	// Instances that forget at the same time take different events.
	forgetSQL = `
with gone as (
	delete from tally_events where ctid = any(array(
		select ctid from tally_events where at < $1::timestamptz order by at limit $2::bigint for update skip locked))
	returning 1)
select count(*) from gone`
)

// "offset 0" keeps the planner from turning the look-ups around: one descent of
// the primary key per item, and never a walk over all that a user likes.
const (
	countsSQL = `
select n, k.count, k.version
from unnest($2::smallint[], $3::bigint[]) with ordinality as i(t, id, n)
cross join lateral (
	select count, version from counters where counter = $1::smallint and item_type = i.t and item_id = i.id offset 0) k`

	registersSQL = `
select n, e.liked, e.clock, e.liked_at
from unnest($3::smallint[], $4::bigint[]) with ordinality as i(t, id, n)
cross join lateral (
	select liked, clock, liked_at from edges
	where counter = $1::smallint and item_type = i.t and item_id = i.id and user_id = $2::bigint offset 0) e`

	likersSQL = `
select user_id, liked_at from edges
where counter = $1::smallint and item_type = $2::smallint and item_id = $3::bigint and user_id > $4::bigint and liked
order by user_id limit $5::bigint`

	// Two ranges of the index instead of one condition with "or", which would
	// read all that lies before the page as well.
	likedBySQL = `
(select item_type, item_id, liked_at from edges
 where user_id = $1::bigint and counter = $2::smallint and item_type = $3::smallint and item_id < $4::bigint and liked
 order by item_type, item_id desc limit $5::bigint)
union all
(select item_type, item_id, liked_at from edges
 where user_id = $1::bigint and counter = $2::smallint and item_type > $3::smallint and liked
 order by item_type, item_id desc limit $5::bigint)
order by item_type, item_id desc limit $5::bigint`

	// One range of the primary key. Edges that were taken back are read too and
	// left out by the caller, so that a long run of them ends a step, not the
	// statement's time.
	walkEdgesSQL = `
select counter, item_type, item_id, user_id, liked_at, liked from edges
where (counter, item_type, item_id, user_id) > ($1::smallint, $2::smallint, $3::bigint, $4::bigint)
order by counter, item_type, item_id, user_id limit $5::bigint`
)
