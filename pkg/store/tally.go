package store

import (
	"bytes"
	"cmp"
	"context"
	"time"

	"likectl/pkg/likes"
)

// Add is one event of a tally.
type Add struct {
	Key
	Event likes.EventID
	// At is when the event was given to the store, to the microsecond: its age
	// is counted from here.
	At time.Time
}

// Compare orders events by counter, item type, item and event: the order in
// which whoever adds several of them locks them.
func (a Add) Compare(b Add) int {
	return cmp.Or(a.Key.Compare(b.Key), bytes.Compare(a.Event[:], b.Event[:]))
}

// Added is what became of an Add.
type Added struct {
	// New: the event was not there before and is counted now.
	New bool
	// Count and Version are the item's counter after the whole batch.
	Count   int64
	Version likes.CountVersion
}

// Tallies keeps the counters that are sums of events, each event remembered
// beside the counter that it was added to. All methods are safe for concurrent
// use, and beside those of [Edges].
type Tallies interface {
	// Add counts all events that are not there yet and remembers them, in one
	// durable transaction; out[i] answers adds[i] and is valid only without an
	// error. The adds are sorted by [Add.Compare] and name no event twice.
	// Errors are those of [Edges.Commit].
	Add(ctx context.Context, adds []Add, out []Added) error

	// Forget removes up to limit events from before an instant, oldest first,
	// and returns how many. No count changes.
	Forget(ctx context.Context, before time.Time, limit int) (int, error)
}
