package likes

import (
	"context"
	"strconv"
	"time"
)

// CountVersion orders the values of one item's count within an epoch: N grows
// by at least one with every change of the count. {0, 0} is a count that was
// never written.
type CountVersion struct {
	Epoch Epoch
	N     int64
}

// Source says where a count came from.
type Source uint8

// The sources of a count.
const (
	// FromStore: read from the durable store.
	FromStore Source = iota + 1
	// FromCache: read from a cache, within the contract's staleness.
	FromCache
	// FromStale: the last known value while the store is away; no bound.
	FromStale
)

// String returns the source's name.
func (s Source) String() string {
	switch s {
	case FromStore:
		return "store"
	case FromCache:
		return "cache"
	case FromStale:
		return "stale"
	default:
		return "source " + strconv.Itoa(int(s))
	}
}

// Count is the number of liked edges of one item, or the number of events of a
// tally. If Err is set nothing else is: an item whose store failed has no count,
// it does not have 0 likes.
type Count struct {
	N       int64
	Version CountVersion
	// AsOf is an instant at which the count had this value, by the service's
	// clock.
	AsOf   time.Time
	Source Source
	Err    error
}

// Membership answers whether a user likes an item. If Err is set nothing else
// is: an edge whose store failed is unknown, not "no".
type Membership struct {
	Liked bool
	// Clock is the register's clock, 0 if no operation ever touched the edge.
	Clock Clock
	// LikedAt is when the like began; zero while not liked.
	LikedAt time.Time
	Err     error
}

// Member is one liked edge in a page.
type Member struct {
	Edge    Edge
	LikedAt time.Time
}

// Cursor continues a listing where a page ended: opaque to everyone but the
// service that made it. "" starts at the beginning and, returned, means that
// the listing has ended.
type Cursor string

// Sizes that every tier accepts and none exceeds.
const (
	// MaxApply is the largest number of mutations in one Apply.
	MaxApply = 1000
	// MaxRead is the largest number of items in one Counts or Has.
	MaxRead = 500
	// MaxPage is the largest page of Likers or LikedBy.
	MaxPage = 1000
)

// Service keeps edges and counts. All methods are safe for concurrent use and
// answer by position: result i belongs to argument i. Arguments over the
// maximum sizes or malformed give ErrInvalid for the whole call or for the
// entry, before any store is asked. A context that ends while a mutation may
// have been sent gives ErrUncertain for it; the work is not taken back.
type Service interface {
	// Apply performs the mutations. Each one is atomic and durable when its
	// result has no error; together they are not a transaction. Mutations of
	// one call on the same edge take effect in their order. Issued operations
	// always take effect, and repeating one is safe: a second Set by the same
	// user changes nothing. Replays take effect if newer. Outcome Changed is
	// given to exactly one of any number of concurrent equal operations on an
	// edge where the contract says that it is exact.
	//
	// Adds to tallies are kept apart from edges by what they are counted by:
	// an event counts once for its tally and item, however often, from whom and
	// as whatever kind (issued or replayed) it is added. Of any number of equal
	// ones, concurrent ones included, exactly one is Changed. An event is
	// remembered for as long as the service is configured to, and forgetting it
	// never changes a count; whoever repeats one later counts it again.
	Apply(ctx context.Context, ms []Mutation) []Result

	// Counts returns the count of each item; an item that nobody ever liked
	// has 0. Duplicates are fine. A count is at least as new as every version
	// in seen that names an edge of its item, or it carries ErrNotYet; versions
	// of other items are ignored. Tallies have counts too; the methods below ask
	// for edges, and for a tally they are ErrInvalid.
	Counts(ctx context.Context, c Counter, items []Item, seen []Version) []Count

	// Has returns whether the user likes each item, with the same rules as
	// Counts. It has no false negatives within the contract's edge staleness.
	Has(ctx context.Context, c Counter, user UserID, items []Item, seen []Version) []Membership

	// Likers pages through the users who like the item, by ascending user id.
	// limit is 1 to MaxPage. Under concurrent writes every user who likes the
	// item during the whole walk appears exactly once, and nobody twice. A
	// cursor of another listing is ErrInvalid.
	Likers(ctx context.Context, c Counter, item Item, cur Cursor, limit int) ([]Member, Cursor, error)

	// LikedBy pages through the items the user likes, by ascending item type,
	// then descending item id (newest first where ids grow with time), with the
	// same rules as Likers.
	LikedBy(ctx context.Context, c Counter, user UserID, cur Cursor, limit int) ([]Member, Cursor, error)

	// Contract returns what the answers above are worth.
	Contract() Contract
}
