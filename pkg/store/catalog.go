package store

import (
	"context"

	"likectl/pkg/likes"
	"likectl/pkg/visibility"
)

// ItemChange says what becomes of an item's row. Zero fields, and pointers that
// are nil, keep what is stored; a new item has no owner, is public and live, and
// its counts are shown.
type ItemChange struct {
	Item       likes.Item
	Owner      *likes.UserID // 0: nobody
	Level      visibility.Level
	State      visibility.State
	HideCounts *bool
}

// Block keeps a user from everything of another one, or from one item.
type Block struct {
	// Blocker is the user who blocks, or 0 if Item is set.
	Blocker likes.UserID
	Item    likes.Item
	Blocked likes.UserID
}

// Follow is one user following another.
type Follow struct{ Follower, Followee likes.UserID }

// Totals are sums over a user. A counter that has 0 is missing.
type Totals struct {
	// Given is what the user likes and saves, without items that are hidden or
	// deleted.
	Given map[likes.Counter]int64
	// Received is what live items of the user have; of those that hide their
	// counts it is in ReceivedHidden instead, since whoever knows a sum with and
	// without an item knows the item's count.
	Received, ReceivedHidden map[likes.Counter]int64
}

// NewTotals returns totals of nothing.
func NewTotals() Totals {
	return Totals{
		Given: make(map[likes.Counter]int64), Received: make(map[likes.Counter]int64), ReceivedHidden: make(map[likes.Counter]int64),
	}
}

// Catalog keeps items, blocks and follows. All methods are safe for concurrent
// use, durable when they return, and idempotent; changed says whether anything
// was different before. Of concurrent changes to one row the last one stays.
//
// Errors are those of [Edges]; ErrInvalid also for ids that are not positive, levels
// and states that there are not, blocks and follows of oneself, and more than
// [likes.MaxRead] items or [likes.MaxPage] users in one call, and ErrErased for a row
// that would name an erased user ([People]). Nothing changed then.
type Catalog interface {
	// PutItem changes an item's row or makes it, and returns it as it is now.
	PutItem(ctx context.Context, c ItemChange) (now visibility.Item, changed bool, err error)
	// PutBlock adds a block, or removes it.
	PutBlock(ctx context.Context, b Block, on bool) (changed bool, err error)
	// PutFollow adds a follow, or removes it.
	PutFollow(ctx context.Context, f Follow, on bool) (changed bool, err error)

	// Facts reads what decides whether the viewer, 0 for nobody, sees each item,
	// in one query and one snapshot. It takes as long for an item that the viewer
	// may not see as for one that does not exist: neither look-up of the owner is
	// left out.
	Facts(ctx context.Context, viewer likes.UserID, items []likes.Item, out []visibility.Facts) error
	// Restricts says whether any item has a row or any user is blocked from an item.
	// While neither is so, nothing keeps anyone from anything (a block between users
	// needs an item that has an owner), and Facts need not be asked.
	Restricts(ctx context.Context) (bool, error)
	// Blocked says for each user whether there is a block between the two, by
	// either of them.
	Blocked(ctx context.Context, viewer likes.UserID, users []likes.UserID, out []bool) error
	// Totals sums over the user's edges and items, in one snapshot.
	Totals(ctx context.Context, user likes.UserID) (Totals, error)
}
