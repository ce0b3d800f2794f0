// Package ingest reads likes from files and applies them as replays.
//
// A file is CSV with a header or JSONL, one like or unlike per line, plain or
// gzipped. Its fields, in any order:
//
//	user_id    1 to 2^63-1; in JSON a string or an integer
//	item_type  a configured name
//	item_id    like user_id
//	action     like (default) or unlike
//	liked_at   RFC 3339, as Postgres prints it, or seconds since 1970; empty: not known
//	counter    likes (default) or saves
//
// # Which line wins
//
// A line's clock is its liked_at if that is 2020 or later, else its line number,
// in microseconds from the clock's epoch on. So lines without a time stand in
// the order of the file, and before every line with one. Of equal clocks on one
// edge the later line wins. An import is a replay: a line that is older than
// what the store has of its edge changes nothing, hence an import of the same
// file changes nothing the second time, and an import that broke off is simply
// run again.
//
// Stores break ties in favour of the unlike, whatever the order. To have the
// later line win all the same, its clock is made greater: the lower 12 bits,
// which in issued clocks name an instance, hold a rank (see ranks). The ranks
// follow from the file alone, so lines may be applied in any order and any
// number of times.
package ingest
