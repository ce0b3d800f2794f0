// Package tier1 is the tier of one database: the edge table's primary key is
// what makes a user count once, and the transaction is what makes the count
// exact. See README.md beside this file for settings and what a loss costs.
//
// # Problem
//
// A like has to be durable and counted when it is answered. Done naively
// (insert, update the counter, commit) every like on a popular item waits for
// the row lock of its counter while the like before it is flushed to disk: one
// flush per like, whatever the number of clients.
//
// # Flow
//
//	Apply ─ check ─ lane by item ─ batch ─ fold per edge ─ one transaction ─ answers
//	Counts, Has, Likers, LikedBy ─────────────────────────── one query
//
// Concurrent mutations become batches (pkg/batch), each a single statement that
// locks edges, then counters, in key order. Issued operations and replays have
// batchers of their own: their rules differ (pkg/likes, Register), and a bulk
// import must not stand in the queue of people.
//
// Adds to tallies (views, shares) have the third batcher:
//
//	Apply ─ check ─ lane by item ─ batch ─ fold per event ─ one transaction ─ answers
//
// An event is a row of its own, keyed by tally, item and event id, inserted where
// it is not there yet; the counter moves by what was inserted. A paced worker
// forgets rows older than the retention (events.retention), which must be longer
// than anybody repeats an event. Counts stay.
//
// # Invariants
//
//	I1 An answer without an error was committed and flushed before.
//	I2 An edge has one row, so a user counts at most once.
//	I3 In every snapshot the counter equals the number of liked edges: both
//	   change in one transaction, by what the locked row was and became.
//	   Of a tally, the counter is the number of events ever inserted: an event
//	   has one row while it is remembered, so it counts at most once.
//	I4 A count read is the truth at an instant between the read's start and end.
//	I5 A read that begins after an answer includes it, on every instance.
//	I6 The last acknowledged operation on an edge is its state: an issued
//	   operation's clock is raised above the stored one by the row itself.
//	I8 Of an erased user nothing is applied: each transaction looks its users up
//	   among the erased ones, and an erasure goes on only when every transaction
//	   that could have begun before it has ended ([store.People]).
//
// # What a crash loses
//
// This process: nothing that was answered. What was in flight is done or not
// done, its callers got no answer, and repeating it is safe. The database:
// nothing that was answered, as long as it flushes (fsync,
// synchronous_commit, full_page_writes; checked at start). While it is away
// nothing is accepted.
//
// # Rejected
//
// Reading the old state in the statement's own CTE and adding the difference:
// the CTE sees the statement's snapshot, so two concurrent first likes of one
// user are both "new" and count twice. The row's own previous value, kept in
// the column was, is read under the row's lock.
package tier1
