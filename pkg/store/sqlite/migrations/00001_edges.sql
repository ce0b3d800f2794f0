-- +goose Up
-- Clocks are those of likes.Clock, instants are microseconds since 1970 UTC.
CREATE TABLE edges (
    counter   INTEGER NOT NULL,
    item_type INTEGER NOT NULL,
    item_id   INTEGER NOT NULL,
    user_id   INTEGER NOT NULL,
    clock     INTEGER NOT NULL,
    liked_at  INTEGER NOT NULL,
    liked     INTEGER NOT NULL,
    PRIMARY KEY (counter, item_type, item_id, user_id)
) STRICT, WITHOUT ROWID;

-- The order of "my likes". It holds no column that a repeated like or an unlike
-- changes, so only the first like of an edge writes to it.
CREATE INDEX edges_by_user ON edges (user_id, counter, item_type, item_id DESC);

CREATE TABLE counters (
    counter   INTEGER NOT NULL,
    item_type INTEGER NOT NULL,
    item_id   INTEGER NOT NULL,
    count     INTEGER NOT NULL,
    version   INTEGER NOT NULL,
    PRIMARY KEY (counter, item_type, item_id)
) STRICT, WITHOUT ROWID;

-- What item_type stands for. No row is ever changed: see store.ItemTypes.
CREATE TABLE item_types (
    name TEXT    PRIMARY KEY,
    type INTEGER NOT NULL UNIQUE CHECK (type > 0)
) STRICT;

-- One row: the epoch of every count's version.
CREATE TABLE likectl_meta (
    id    INTEGER PRIMARY KEY CHECK (id = 1),
    epoch INTEGER NOT NULL
) STRICT;
INSERT INTO likectl_meta (id, epoch) VALUES (1, 1);
