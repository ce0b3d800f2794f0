package main

// scheme is a way to keep likes and counts in Postgres.
type scheme struct {
	name string
	// schema makes the tables; "" for likectl's own.
	schema string
	// like is a pgbench script that likes :item as :user. handler are its
	// statements with parameters: $1 is the user, $2 the item.
	like string
	// edges and counters select (item, n): how many likes each item has, and what
	// is counted for it.
	edges, counters string
	// drifts: counts may be wrong, which is what the scheme is shown for.
	drifts bool
}

// The tables of the design documents, section 16.1.
const documentTables = `
create table user_likes (
	id bigserial primary key, user_id bigint not null, item_id bigint not null, item_type smallint not null,
	created_at timestamptz default now(), unique (user_id, item_id, item_type));
create index idx_user_likes_item on user_likes (item_id, item_type);
create table counters (
	item_id bigint not null, item_type smallint not null, like_count bigint default 0,
	updated_at timestamptz default now(), primary key (item_id, item_type));`

// leanTables hold the same without a surrogate key. They serve both orders, by item
// and by user, as those of the documents and of likectl do.
const leanTables = `
create table user_likes (
	item_id bigint not null, user_id bigint not null, created_at timestamptz default now(), item_type smallint not null,
	primary key (item_type, item_id, user_id));
create index user_likes_by_user on user_likes (user_id, item_type, item_id);
create table counters (
	item_id bigint not null, like_count bigint not null, item_type smallint not null,
	primary key (item_type, item_id)) with (fillfactor = 60);`

const (
	insertLike = `insert into user_likes (user_id, item_id, item_type) values (:user, :item, 1) on conflict do nothing`
	countOne   = `insert into counters (item_id, item_type, like_count) values (:item, 1, 1)
	on conflict (item_id, item_type) do update set like_count = counters.like_count + 1, updated_at = now()`
	edgesByItem    = `select item_id as item, count(*) as n from user_likes group by 1`
	countersByItem = `select item_id as item, like_count as n from counters`
)

// documents is the transaction of the design documents: two statements between
// begin and commit.
func documents() scheme {
	return scheme{
		name: "documents", schema: documentTables,
		like:  "begin;\n" + insertLike + ";\n" + countOne + ";\ncommit;\n",
		edges: edgesByItem, counters: countersByItem,
	}
}

// oneStatement is the strongest that plain SQL has: one round trip, one implicit
// transaction, lean tables; the count changes only if the like is new.
func oneStatement() scheme {
	return scheme{
		name: "one statement", schema: leanTables,
		like: `with added as (` + insertLike + ` returning item_id)
insert into counters (item_id, item_type, like_count) select item_id, 1, 1 from added
on conflict (item_type, item_id) do update set like_count = counters.like_count + 1;
`,
		edges: edgesByItem, counters: countersByItem,
	}
}

// triggers leaves the counting to the database.
func triggers() scheme {
	return scheme{
		name: "trigger", schema: leanTables + `
create function count_like() returns trigger language plpgsql as $$
begin
	insert into counters (item_id, item_type, like_count) values (new.item_id, new.item_type, 1)
	on conflict (item_type, item_id) do update set like_count = counters.like_count + 1;
	return null;
end $$;
create trigger count_likes after insert on user_likes for each row execute function count_like();`,
		like: insertLike + ";\n", edges: edgesByItem, counters: countersByItem,
	}
}

// recount counts all likes of the item after each one. It crawls on a popular item;
// and it drifts, since no transaction sees the likes of those that run beside it.
func recount() scheme {
	return scheme{
		name: "recount", schema: documentTables, drifts: true,
		like: "begin;\n" + insertLike + `;
insert into counters (item_id, item_type, like_count)
	select :item, 1, count(*) from user_likes where item_id = :item and item_type = 1
	on conflict (item_id, item_type) do update set like_count = excluded.like_count, updated_at = now();
commit;
`,
		edges: edgesByItem, counters: countersByItem,
	}
}

// registers are likectl's own tables.
func registers() scheme {
	return scheme{
		name:     "likectl",
		edges:    `select item_id as item, count(*) as n from edges where liked group by 1`,
		counters: `select item_id as item, count as n from counters`,
	}
}
