-- +goose Up
-- What is known about items besides their likes. An item without a row is public,
-- unless the configuration says that items are registered. level and state are
-- those of pkg/visibility.
CREATE TABLE items (
    item_type   INTEGER NOT NULL,
    item_id     INTEGER NOT NULL,
    owner_id    INTEGER NOT NULL, -- 0: nobody
    level       INTEGER NOT NULL,
    state       INTEGER NOT NULL,
    hide_counts INTEGER NOT NULL,
    PRIMARY KEY (item_type, item_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX items_by_owner ON items (owner_id, item_type, item_id) WHERE owner_id > 0;

CREATE TABLE blocks (
    blocker_id INTEGER NOT NULL,
    blocked_id INTEGER NOT NULL,
    PRIMARY KEY (blocker_id, blocked_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX blocks_by_blocked ON blocks (blocked_id, blocker_id);

CREATE TABLE item_blocks (
    item_type  INTEGER NOT NULL,
    item_id    INTEGER NOT NULL,
    blocked_id INTEGER NOT NULL,
    PRIMARY KEY (item_type, item_id, blocked_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX item_blocks_by_blocked ON item_blocks (blocked_id);

CREATE TABLE follows (
    follower_id INTEGER NOT NULL,
    followee_id INTEGER NOT NULL,
    PRIMARY KEY (follower_id, followee_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX follows_by_followee ON follows (followee_id, follower_id);

-- Erased users, for ever: see store.Erasure. user_id and into_id are there until
-- the erasure is finished.
CREATE TABLE erasures (
    user_hash   BLOB    PRIMARY KEY,
    begun_at    INTEGER NOT NULL,
    finished_at INTEGER,
    user_id     INTEGER,
    into_id     INTEGER,
    merged      INTEGER NOT NULL,
    edges       INTEGER NOT NULL DEFAULT 0,
    tombstones  INTEGER NOT NULL DEFAULT 0,
    relations   INTEGER NOT NULL DEFAULT 0,
    CHECK ((user_id IS NULL) = (finished_at IS NOT NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX erasures_unfinished ON erasures (begun_at, user_hash) WHERE finished_at IS NULL;

-- The key of store.UserHash. It stays for ever, since the hashes do. (A column's
-- default cannot be random.)
CREATE TABLE user_hash_key (
    id  INTEGER PRIMARY KEY CHECK (id = 1),
    key BLOB    NOT NULL
) STRICT;
INSERT INTO user_hash_key (id, key) VALUES (1, randomblob(16));
