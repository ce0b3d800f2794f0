package postgres

// The names of the prepared statements of the catalog.
const (
	putItemStatement      = "likectl_put_item"
	putBlockStatement     = "likectl_put_block"
	putItemBlockStatement = "likectl_put_item_block"
	putFollowStatement    = "likectl_put_follow"
	factsStatement        = "likectl_facts"
	restrictsStatement    = "likectl_restricts"
	blockedStatement      = "likectl_blocked"
	totalsStatement       = "likectl_totals"
)

func catalogStatements() []statement {
	return []statement{
		{putItemStatement, putItemSQL},
		{putBlockStatement, putBlockSQL},
		{putItemBlockStatement, putItemBlockSQL},
		{putFollowStatement, putFollowSQL},
		{factsStatement, factsSQL},
		{restrictsStatement, restrictsSQL},
		{blockedStatement, blockedSQL},
		{totalsStatement, totalsSQL},
	}
}

// The writes have two last parameters: the hashes of the users whom a row would
// name, none of whom may be erased, and the instant after which they must not begin
// (see inTime). They answer with one row, or with none if that is not so: then they
// have changed nothing.
const (
	// -1 or 0, where it is no value, keeps what is stored; a new row begins as
	// store.ItemChange says.
	//
	// ON CONFLICT waits for the row's lock and compares with the row as it is; it
	// keeps the lock where nothing is to be changed too. So same, which reads the
	// newest version of a row because it locks, reads the one that was compared.
	// A row that is younger than this statement's snapshot it cannot see: then
	// there is no answer although the statement was in time, and the next attempt
	// sees it.
	putItemSQL = `
with t as materialized (
	select clock_timestamp() <= $8::timestamptz and not exists (select from erasures where user_hash = any($7::uuid[])) as ok),
up as (
	insert into items as i (item_type, item_id, owner_id, level, state, hide_counts)
	select $1::smallint, $2::bigint, greatest($3::bigint, 0), greatest($4::smallint, 1), greatest($5::smallint, 1), $6::smallint = 1
	from t where ok
	on conflict (item_type, item_id) do update set
		owner_id = case when $3::bigint >= 0 then $3::bigint else i.owner_id end,
		level = case when $4::smallint > 0 then $4::smallint else i.level end,
		state = case when $5::smallint > 0 then $5::smallint else i.state end,
		hide_counts = case when $6::smallint >= 0 then $6::smallint = 1 else i.hide_counts end
	where ($3::bigint >= 0 and $3::bigint <> i.owner_id)
		or ($4::smallint > 0 and $4::smallint <> i.level)
		or ($5::smallint > 0 and $5::smallint <> i.state)
		or ($6::smallint >= 0 and ($6::smallint = 1) <> i.hide_counts)
	returning owner_id, level, state, hide_counts),
same as (
	select owner_id, level, state, hide_counts from items
	where item_type = $1::smallint and item_id = $2::bigint and (select ok from t) and not exists (select from up)
	for share)
select true, owner_id, level, state, hide_counts from up
union all select false, owner_id, level, state, hide_counts from same`

	// Of a row that is to be there and one that is not, either statement waits for
	// whoever has it in hand: exactly one of equal changes finds it different.
	pairTimeSQL = `
with t as materialized (
	select clock_timestamp() <= $5::timestamptz and not exists (select from erasures where user_hash = any($4::uuid[])) as ok),
put as (
	insert into `
	pairRowSQL = ` select $1::bigint, $2::bigint from t where ok and $3::bool
	on conflict do nothing returning 1),
gone as (
	delete from `
	pairGoneSQL = ` and not $3::bool and (select ok from t)
	returning 1)` + memberSQL
	memberSQL = `
select exists(select from put) or exists(select from gone) from t where ok`

	putBlockSQL = pairTimeSQL + "blocks (blocker_id, blocked_id)" + pairRowSQL +
		"blocks where blocker_id = $1::bigint and blocked_id = $2::bigint" + pairGoneSQL

	putFollowSQL = pairTimeSQL + "follows (follower_id, followee_id)" + pairRowSQL +
		"follows where follower_id = $1::bigint and followee_id = $2::bigint" + pairGoneSQL

	putItemBlockSQL = `
with t as materialized (
	select clock_timestamp() <= $6::timestamptz and not exists (select from erasures where user_hash = any($5::uuid[])) as ok),
put as (
	insert into item_blocks (item_type, item_id, blocked_id) select $1::smallint, $2::bigint, $3::bigint from t where ok and $4::bool
	on conflict do nothing returning 1),
gone as (
	delete from item_blocks
	where item_type = $1::smallint and item_id = $2::bigint and blocked_id = $3::bigint and not $4::bool and (select ok from t)
	returning 1)` + memberSQL
)

const (
	// Five descents of primary keys for every item, whether it has a row or not and
	// whatever the others find: "exists" or "or" would leave some out, and how long
	// it takes would tell what may not be told. Nobody is user 0.
	factsSQL = `
select n, i.owner_id is not null, coalesce(i.owner_id, 0), coalesce(i.level, 0::smallint), coalesce(i.state, 0::smallint),
	coalesce(i.hide_counts, false),
	(select count(*) from follows where follower_id = $1::bigint and followee_id = coalesce(i.owner_id, 0)) > 0,
	(select count(*) from item_blocks where item_type = k.t and item_id = k.id and blocked_id = $1::bigint)
	+ (select count(*) from blocks where blocker_id = coalesce(i.owner_id, 0) and blocked_id = $1::bigint)
	+ (select count(*) from blocks where blocker_id = $1::bigint and blocked_id = coalesce(i.owner_id, 0)) > 0
from unnest($2::smallint[], $3::bigint[]) with ordinality as k(t, id, n)
left join lateral (
	select owner_id, level, state, hide_counts from items where item_type = k.t and item_id = k.id offset 0) i on true`

	restrictsSQL = "select exists(select from items) or exists(select from item_blocks)"

	blockedSQL = `
select n,
	(select count(*) from blocks where blocker_id = $1::bigint and blocked_id = k.id)
	+ (select count(*) from blocks where blocker_id = k.id and blocked_id = $1::bigint) > 0
from unnest($2::bigint[]) with ordinality as k(id, n)`

	// State 1 is live. "owner_id > 0" names the index's predicate, which a plan for
	// every user cannot prove otherwise.
	totalsSQL = `
select 0, e.counter, count(*)
from (select counter, item_type, item_id from edges where user_id = $1::bigint and liked offset 0) e
left join lateral (select state from items where item_type = e.item_type and item_id = e.item_id offset 0) i on true
where coalesce(i.state, 1) = 1
group by e.counter
union all
select 1 + i.hide_counts::int, c.counter, sum(k.count)::bigint
from (select item_type, item_id, hide_counts from items where owner_id = $1::bigint and owner_id > 0 and state = 1 offset 0) i
cross join unnest($2::smallint[]) as c(counter)
cross join lateral (
	select count from counters where counter = c.counter and item_type = i.item_type and item_id = i.item_id offset 0) k
group by 1, 2 having sum(k.count) <> 0`
)
