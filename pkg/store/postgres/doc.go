// Package postgres keeps edges and counters in PostgreSQL 14 or later, by
// pgx. A batch of writes is one statement in a transaction of its own, hence one
// round trip and one flush to disk, however many likes are in it.
//
// # Why concurrent batches are exact
//
// All transactions are READ COMMITTED. INSERT … ON CONFLICT DO UPDATE waits for
// the row's lock and then works on the row as it is, not as the statement's
// snapshot shows it. So the old state is taken from the row itself (was =
// e.liked) and the counter changes by liked − was. Reading the old state in
// another part of the statement would read the snapshot, and of two concurrent
// first likes by one user both would count.
//
// The count of an item whose counter the batch does not change is read by a
// volatile function, called after all edges are locked: its snapshot is newer
// than the locks. The statement's own snapshot can be older than the like that
// it found, and then "you already like this" would come with a count without
// that like.
//
// Events of tallies are exact for a simpler reason: they are inserted and never
// updated, and INSERT … ON CONFLICT DO NOTHING waits for an equal event in flight.
//
// # Why writers do not deadlock
//
// Every transaction locks edges (or events) in key order, then counters in key
// order: the
// arrays come sorted, unnest keeps their order, and the counters are upserted
// from a sorted list that is complete only once every edge is locked. A repair
// takes an advisory lock that only repairs take, then one counter.
//
// # Why a batch that was given up does not come back
//
// Issued operations win whatever their clock. A batch whose sender gave up, and
// which waits in some kernel's buffer or before a server that stands still, would
// undo operations that were answered since. Its statement therefore names the
// instant at which the sender gives up, by the server's clock, and applies
// nothing if it begins later. What has begun ends by the statement timeout.
//
// Writes of the catalog (items, blocks, follows) name the instant too: what became
// private since must not become public again. They touch one row each, so no two of
// them can deadlock.
//
// # Why an item that may not be seen costs what none costs
//
// The facts about an item are five searches in indexes, whatever they find: the
// owner of an item without a row is looked up as user 0, and counts are added where
// "exists" and "or" would leave searches out.
//
// # What the session fixes
//
// Each connection sets the isolation level, synchronous_commit and the statement
// timeout, prepares the statements once, and pins their plans to nested loops
// over the primary keys: a plan made while a table is small would otherwise be
// kept, with its table scan, while the table grows. Connection poolers in front
// must keep a session per client.
package postgres
