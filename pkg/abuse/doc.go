// Package abuse keeps fake likes out: what is refused here reaches no service.
//
// A like or save (an [Attempt]) that is well-formed and within its user's own
// limits is held, in the order of cost, against
//
//  1. a list of users, networks and devices with a bad reputation, a file: those
//     that it denies are refused, those that it slows have lower limits below;
//  2. velocity limits: likes by one user on the items of one owner, of one item by
//     everybody, from one address, from one device;
//  3. a scorer: an HTTP service that is asked about each like.
//
// An attempt that one of them refuses costs nothing of any velocity limit, so
// that nobody can use up an item's limit with likes that are refused anyway. One
// that passes costs one of each, whether it then changes anything or not: only
// the store knows.
//
// Likes and saves are counted apart. Taking a like or save back is never asked
// about: whoever may not like can still undo. As in pkg/limit, every process
// counts for itself and forgets when it ends.
package abuse
