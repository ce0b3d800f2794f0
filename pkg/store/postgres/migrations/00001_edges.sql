-- +goose Up

-- Clocks are those of likes.Clock. The columns stand from wide to narrow, so
-- that a row has no padding: 38 bytes of values, 68 with header and line pointer.
--
-- Fillfactor 95 leaves room for six rows on a page. An unlike or a repeated like
-- then finds room beside its old version (a HOT update: no index is touched) and
-- the next one reuses what it left; more room would only be space that rows
-- which never change again do not use.
create table edges (
    item_id   bigint      not null,
    user_id   bigint      not null,
    clock     bigint      not null,
    liked_at  timestamptz not null,
    counter   smallint    not null,
    item_type smallint    not null,
    liked     bool        not null,
    was       bool        not null, -- liked before the last write: what a batch returns as the old state
    primary key (counter, item_type, item_id, user_id)
) with (fillfactor = 95);

-- The order of "my likes". Not partial on liked and without liked_at: a column
-- that an index mentions, in its predicate too, makes the updates of that column
-- write to every index. Pages skip tombstones instead.
create index edges_by_user on edges (user_id, counter, item_type, item_id desc);

-- No check that a count is not negative: a counter can only become so when its
-- edges were tampered with, and then the audit reports it; a check would refuse
-- the users' likes instead.
--
-- Fillfactor 60: a popular row is updated by every batch, and its versions must
-- find room on their page until they are pruned.
create table counters (
    item_id   bigint   not null,
    count     bigint   not null,
    version   bigint   not null,
    counter   smallint not null,
    item_type smallint not null,
    primary key (counter, item_type, item_id)
) with (fillfactor = 60);

-- What item_type stands for. No row is ever changed: see store.ItemTypes.
create table item_types (
    name text     primary key,
    type smallint not null unique check (type > 0)
);

-- One row: the epoch of every count's version, and a fingerprint of the secret
-- that all instances share (null before the first one has started).
create table likectl_meta (
    id         bool        primary key default true check (id),
    epoch      bigint      not null,
    secret     text,
    created_at timestamptz not null default now()
);
insert into likectl_meta (epoch) values (1);

-- Counters as they are now, and not as they were when the calling statement
-- began: a volatile function takes a new snapshot for each of its statements.
-- +goose StatementBegin
create function likectl_counts(smallint[], smallint[], bigint[]) returns setof counters
language plpgsql volatile strict rows 10 as $$
begin
    return query
        select k.* from unnest($1, $2, $3) as i(c, t, id)
        cross join lateral (
            select * from counters where counter = i.c and item_type = i.t and item_id = i.id offset 0) k;
end
$$;
-- +goose StatementEnd
