// Package likes is the domain: who liked what, how many likes an item has, and
// what every tier promises about both. It imports the standard library only;
// every other package of the project speaks in its types.
//
// The model in four sentences. An [Edge] says that one user likes one item in
// one counter. It is stored as a [Register]: liked or not, with the [Clock] of
// the operation that said so, and an unlike keeps the register as a tombstone.
// A [Count] is the number of liked edges of an item; it changes only when an
// edge changed. (The exception are tallies, such as views: sums of events that
// have no edges and are counted by their [EventID].) A [Service] is one tier's way of keeping both, and its
// [Contract] says how exact and how durable each answer is.
package likes
