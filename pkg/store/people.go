package store

import (
	"context"
	"encoding/hex"
	"time"

	"likectl/pkg/likes"
)

// UserHash is what remains of an erased user: a keyed hash (SipHash-2-4, 128 bits)
// of the id under a key that the store made once and keeps. Receipts and logs
// carry it; without the store's key it cannot be matched with an id.
type UserHash [16]byte

// String returns the hash in hexadecimal.
func (h UserHash) String() string { return hex.EncodeToString(h[:]) }

// Erasure is the record of one user's erasure; it is never removed. From the moment
// it exists, the user's floor is the end of time: whatever comes for the user, from
// whichever path and with whatever clock, is not applied.
type Erasure struct {
	User  UserHash
	Begun time.Time
	// Finished is zero while rows of the user may remain.
	Finished time.Time
	// Merged: the user's likes went to another user instead of away.
	Merged bool
	// Edges is how many liked edges were erased or moved, Tombstones how many
	// registers of edges that had been taken back, Relations how many blocks,
	// follows and ownerships.
	Edges, Tombstones, Relations int64
}

// Remains are rows that name a user.
type Remains struct{ Edges, Tombstones, Relations int64 }

// Any says whether there are any.
func (r Remains) Any() bool { return r.Edges+r.Tombstones+r.Relations > 0 }

// MaxErase is the largest step of an erasure.
const MaxErase = 5000

// People erases and merges users. An erasure is begun, then stepped until it is
// done; each step is one transaction, so it may be interrupted anywhere and gone
// on with by anybody. Steps of one user may run at the same time as writers and as
// each other; counters always equal edges.
type People interface {
	// HashUser returns the user's hash.
	HashUser(likes.UserID) UserHash

	// BeginErase records the erasures of users who have none, up to MaxErase of
	// them, durably. When it returns, no write of any of them that was under way
	// can still be committed, in any process. into, unless 0, receives what the one
	// user named has; it must not be erased or the same user (ErrInvalid).
	// Repeating it changes nothing; repeating it with another into is ErrInvalid.
	BeginErase(ctx context.Context, users []likes.UserID, into likes.UserID) error

	// StepErase removes up to limit rows of a user whose erasure has begun, or moves
	// them to the user that BeginErase named, with their counters, and says whether
	// the erasure is finished. Edges go first, then relations. It returns
	// ErrInvalid if none has begun. An edge that both users have is kept once,
	// liked if either liked it, since the earlier of the two.
	StepErase(ctx context.Context, user likes.UserID, limit int) (Erasure, error)

	// Erasure returns the record of the user's erasure, and whether there is one.
	Erasure(ctx context.Context, user likes.UserID) (Erasure, bool, error)

	// Unfinished returns up to limit users whose erasure has begun and not
	// finished; until then the record holds the id.
	Unfinished(ctx context.Context, limit int) ([]likes.UserID, error)

	// Remains counts the rows that name the user, in one snapshot.
	Remains(ctx context.Context, user likes.UserID) (Remains, error)
}
