package likes

import (
	"strconv"
	"time"
)

// Op is what a mutation does to its edge.
type Op uint8

// The operations.
const (
	// Set makes the user like the item. Set counters only.
	Set Op = iota + 1
	// Clear takes the like back. Set counters only.
	Clear
	// Add counts one event of a tally. Tallies only.
	Add
)

// String returns the operation as the API calls it.
func (o Op) String() string {
	switch o {
	case Set:
		return "like"
	case Clear:
		return "unlike"
	case Add:
		return "add"
	default:
		return "op " + strconv.Itoa(int(o))
	}
}

// Mutation is one operation on one edge, or one event of a tally.
type Mutation struct {
	Op Op
	// Edge is what the operation is on. For Add it names the tally and the item;
	// the user is who caused the event, 0 if nobody knows, and is not stored.
	Edge Edge

	// Fixed is 0 for an issued operation, whose clock the service gives it.
	// Otherwise the mutation is a replay with this clock.
	Fixed Clock

	// After is a clock that an issued operation must be later than, from a
	// version token of the same client; 0 if it has none.
	After Clock

	// LikedAt is when the like began, for Set. Zero means: at the clock.
	LikedAt time.Time

	// Event is what an Add is counted by: of all Adds to one tally of one item
	// those with the same Event count once. Other operations have none.
	Event EventID
}

// Validate returns ErrInvalid that names what is wrong, before any store is
// asked.
func (m Mutation) Validate() error {
	switch {
	case m.Op != Set && m.Op != Clear && m.Op != Add:
		return Errorf(ErrInvalid, "%v is not an operation", m.Op)
	case m.Fixed < 0 || m.Fixed > MaxClock:
		return Errorf(ErrInvalid, "replay clock %d is outside 1 to %d", m.Fixed, MaxClock)
	case m.After < 0 || m.After > maxAfter:
		return Errorf(ErrInvalid, "after clock %d is outside 0 to %d", m.After, maxAfter)
	case m.LikedAt.Year() < 1 || m.LikedAt.Year() > 9999: // what every store can keep; the zero time is in the year 1
		return Errorf(ErrInvalid, "liked_at is in the year %d, want 1 to 9999", m.LikedAt.Year())
	case m.Op == Add:
		return m.validateAdd()
	case m.Event != EventID{}:
		return Errorf(ErrInvalid, "event id on a %v: only tallies have events", m.Op)
	default:
		return m.Edge.Validate()
	}
}

func (m Mutation) validateAdd() error {
	switch {
	case !m.Edge.Counter.IsTally():
		return Errorf(ErrInvalid, "counter %d is not a tally: nothing can be added to it", int(m.Edge.Counter))
	case m.Event == EventID{}:
		return Errorf(ErrInvalid, "event id is missing: without one a repeat would count again")
	case m.Edge.User < 0:
		return Errorf(ErrInvalid, "user_id %d is negative, want 0 for nobody or a positive integer", m.Edge.User)
	default:
		return m.Edge.Item.Validate()
	}
}

// Outcome says what a mutation did to its edge.
type Outcome uint8

// The outcomes of a mutation.
const (
	// Changed: the edge is now in the asked state and was not before. Of an Add:
	// it was counted.
	Changed Outcome = iota + 1
	// Unchanged: the edge already was in the asked state. The operation is
	// recorded all the same (see [Register.Issue]). Of an Add: its event had
	// been counted already.
	Unchanged
	// Accepted: durable, applied later; whether it changes anything is unknown.
	Accepted
	// Superseded: a replay that was not newer than what is stored, or one of a
	// user who is erased.
	Superseded
)

// String returns the outcome's name.
func (o Outcome) String() string {
	switch o {
	case Changed:
		return "changed"
	case Unchanged:
		return "unchanged"
	case Accepted:
		return "accepted"
	case Superseded:
		return "superseded"
	default:
		return "outcome " + strconv.Itoa(int(o))
	}
}

// Epoch counts the histories of a store: it grows when a migration or a
// fail-over that may have lost commits starts a new one. Versions of different
// epochs do not compare.
type Epoch int64

// Mark is where an operation stands in a tier's log: opaque bytes, empty at
// tiers without a log.
type Mark string

// Version names the state an operation left behind: one edge, the clock it was
// stored with, where it is in the log, and the epoch. A client that carries it
// reads its own write on every instance. The version of an Add has no clock:
// events have no order.
type Version struct {
	Edge  Edge
	Epoch Epoch
	Clock Clock
	Mark  Mark
}

// Result answers one mutation. If Err is set nothing else is.
type Result struct {
	Outcome Outcome
	Version Version
	// Count is the item's count just after an issued operation: it includes
	// this one and is a value the count really had. Replays carry no count.
	Count Count
	Err   error
}
