// Package store holds the ports that tiers ask of a technology. Each technology
// is a package below this one, translates its driver's errors to the kinds of
// pkg/likes at its own edge, and never imports another.
package store

import (
	"context"
	"time"

	"likectl/pkg/likes"
)

// Write is what one batch does to one edge.
type Write struct {
	Edge  likes.Edge
	Liked bool
	Clock likes.Clock
	// LikedAt is when the like began, to the microsecond. An issued write of an
	// edge that is liked already keeps the stored one, unless Restarted.
	LikedAt time.Time
	// Restarted: the batch also took the like back, so that LikedAt counts even
	// if the edge was liked before the batch and is after it.
	Restarted bool
}

// Over returns the register that this write leaves over an old one, and whether
// it is applied: a replay may not be newer. It is the rule of every store; those
// that decide in Go call it, the others say it in their own language.
func (w Write) Over(old likes.Register, replay bool) (likes.Register, bool) {
	if replay {
		return old.Replay(w.Liked, w.Clock, w.LikedAt)
	}
	old.Liked = old.Liked && !w.Restarted
	now, _ := old.Issue(w.Liked, w.Clock, w.LikedAt)
	return now, true
}

// Written is what became of a Write.
type Written struct {
	// Applied is false only for a replay that was not newer than the stored
	// register, and for a user who is erased; then nothing else is set but
	// Erased.
	Applied bool
	// Erased: the edge's user is erased or merged into another ([People]).
	Erased bool
	// Was is the edge's state before, as the row held it when it was locked.
	Was bool
	// Clock is the register's clock now.
	Clock likes.Clock
	// Count and Version are the item's counter after the whole batch. Replays
	// do not set them.
	Count   int64
	Version likes.CountVersion
}

// Commit is one durable transaction over edges and their counters. What a
// higher tier adds to the same transaction (the expected epoch, rows of
// cache_dirty, offsets, an outbox) becomes a field here.
type Commit struct {
	// Replay selects the rule of [likes.Register.Replay] for every write;
	// otherwise the rule is [likes.Register.Issue].
	Replay bool
	// Writes are sorted by [likes.Edge.Compare] and name no edge twice.
	Writes []Write
}

// CountRow is a stored counter; the zero value is an item without one.
type CountRow struct {
	N       int64
	Version likes.CountVersion
}

// Edges keeps registers and counters in one place, where a transaction covers
// both. All methods are safe for concurrent use.
type Edges interface {
	// Commit applies all writes or none and returns only once they are flushed
	// to disk; out[i] answers Writes[i] and is valid only without an error.
	// An error is ErrUnavailable or ErrOverloaded if surely nothing was
	// applied, ErrUncertain if the transaction may have committed. Conflicts
	// that the store resolves by rolling back (serialisation failures,
	// deadlocks with other writers) are retried inside.
	Commit(ctx context.Context, c Commit, out []Written) error

	// Counts reads the counters of the items in one query.
	Counts(ctx context.Context, c likes.Counter, items []likes.Item, out []CountRow) error

	// Registers reads the user's registers of the items in one query; the zero
	// Register stands for an edge without one.
	Registers(ctx context.Context, c likes.Counter, user likes.UserID, items []likes.Item, out []likes.Register) error

	// Likers returns up to limit liked edges of the item with user > after, by
	// ascending user.
	Likers(ctx context.Context, c likes.Counter, item likes.Item, after likes.UserID, limit int) ([]likes.Member, error)

	// LikedBy returns up to limit liked edges of the user that follow after in
	// the order (type ascending, id descending); the zero Item is before all.
	LikedBy(ctx context.Context, c likes.Counter, user likes.UserID, after likes.Item, limit int) ([]likes.Member, error)

	// Now reads the store's own clock, the reference of the cluster.
	Now(ctx context.Context) (time.Time, error)
}

// MaxWalk is the largest step of a [Walker]: some 300 KB of edges.
const MaxWalk = 5000

// EdgePage is one step of a walk over all edges.
type EdgePage struct {
	// Members are the liked edges of the step, in key order. There may be none
	// although the walk goes on, where all that it met had been taken back.
	Members []likes.Member
	// Next continues the walk; the zero Edge says that it has ended.
	Next likes.Edge
}

// Walker reads all liked edges, or all of one user.
//
// Each step is one snapshot and continues behind a key, so under live writes an
// edge that is liked during the whole walk appears exactly once and none twice;
// one that changes meanwhile appears or not, as it was when its step came by.
type Walker interface {
	// WalkEdges looks at up to limit edges behind after, in the order of
	// [likes.Edge.Compare], and returns those that are liked; limit, 1 to
	// MaxWalk, bounds the work too, since edges that were taken back count. The
	// zero Edge is before all, one with nothing but a Counter before that
	// counter's.
	WalkEdges(ctx context.Context, after likes.Edge, limit int) (EdgePage, error)
	// LikedBy is that of [Edges].
	LikedBy(ctx context.Context, c likes.Counter, user likes.UserID, after likes.Item, limit int) ([]likes.Member, error)
	// EstimateEdges returns about how many liked edges a counter has, 0 for all
	// counters, for progress; 0 if unknown.
	EstimateEdges(ctx context.Context, c likes.Counter) (int64, error)
}

// CheckWalk returns ErrInvalid unless a step has 1 to MaxWalk edges.
func CheckWalk(limit int) error {
	if limit < 1 || limit > MaxWalk {
		return likes.Errorf(likes.ErrInvalid, "a step of %d edges, want 1 to %d", limit, MaxWalk)
	}
	return nil
}

// Key names one counter.
type Key struct {
	Counter likes.Counter
	Item    likes.Item
}

// Compare orders keys by counter, item type and item.
func (k Key) Compare(o Key) int {
	return likes.Edge{Counter: k.Counter, Item: k.Item}.Compare(likes.Edge{Counter: o.Counter, Item: o.Item})
}

// Drift is a counter that does not equal its edges.
type Drift struct {
	Key
	// Stored is the counter's value, Edges the number of liked edges, both of
	// one snapshot.
	Stored, Edges int64
	// Missing: the counter has no row.
	Missing bool
}

// Audit is one step of a walk over all counters and all items with edges.
type Audit struct {
	// Checked is the number of counters compared.
	Checked int
	Drifts  []Drift
	// Next continues the walk; the zero Key says that it has ended.
	Next Key
}

// CheckAudit returns ErrInvalid if a key names a counter without edges.
func CheckAudit(keys ...Key) error {
	for i, k := range keys {
		if err := likes.CheckSet(k.Counter); err != nil {
			return likes.Errorf(likes.ErrInvalid, "keys[%d]: %w", i, err)
		}
	}
	return nil
}

// Auditor compares counters with the edges they are derived from and repairs
// them under live writes.
//
// A batch changes edges and counter in one transaction, so in every snapshot
// the drift (edges minus stored) is the same no matter how many writers run.
// Hence a repair measures the drift in one snapshot and adds it: it needs
// neither a lock on the counter nor a quiet moment, and never undoes a like.
//
// Tallies have no edges to be compared with. Walks pass them by, and a key that
// names one is ErrInvalid.
type Auditor interface {
	// Audit compares up to limit counters after a key, in key order.
	Audit(ctx context.Context, after Key, limit int) (Audit, error)
	// AuditItem compares the given counters only. Those that have neither a row
	// nor a like are not compared, and not in Checked.
	AuditItem(ctx context.Context, keys []Key) (Audit, error)
	// Repair measures the key's drift again and adds it to the counter; the
	// returned Drift is what it measured. Concurrent repairs of one key take
	// turns, so that a drift is never added twice.
	Repair(ctx context.Context, k Key) (Drift, error)
	// Estimate returns about how many counters a full walk will check, for
	// progress; 0 if unknown.
	Estimate(ctx context.Context) (int64, error)
}
