-- +goose Up
-- The events that tallies are sums of, as far back as they are remembered: what
-- makes an event count once. Their counts are in counters and stay when an event
-- is forgotten. The ids that likectl makes grow with time, so they go to the end
-- of the tree.
CREATE TABLE tally_events (
    event_id  BLOB    NOT NULL,
    counter   INTEGER NOT NULL,
    item_type INTEGER NOT NULL,
    item_id   INTEGER NOT NULL,
    at        INTEGER NOT NULL, -- when it was added
    PRIMARY KEY (event_id, counter, item_type, item_id)
) STRICT, WITHOUT ROWID;

-- The order in which events are forgotten.
CREATE INDEX tally_events_by_age ON tally_events (at);
