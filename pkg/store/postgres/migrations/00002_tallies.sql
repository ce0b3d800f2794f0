-- +goose Up

-- The events that tallies are sums of, as far back as they are remembered: what
-- makes an event count once. Their counts are in counters and stay when an event
-- is forgotten. A row has 36 bytes of values and is never updated.
--
-- event_id stands first in the key, since ids that likectl makes grow with time:
-- they go to the end of the index, however many items they are spread over.
create table tally_events (
    event_id  uuid        not null,
    item_id   bigint      not null,
    at        timestamptz not null, -- when it was added
    counter   smallint    not null,
    item_type smallint    not null,
    primary key (event_id, counter, item_type, item_id)
);

-- The order in which events are forgotten.
create index tally_events_by_age on tally_events (at);
