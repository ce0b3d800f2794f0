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
	// them, all or none, durably. When it returns, no write of any of them that was
	// under way can still be committed, in any process. into, unless 0, receives
	// what the one user named has; it must not be erased or the same user, and who
	// receives cannot be erased until that has finished (ErrInvalid). Repeating it
	// changes nothing; repeating it with another into is ErrInvalid (once it has
	// finished, only whether there was one is known). ErrUnavailable may come after
	// it was recorded, when writes under way did not end: repeat it.
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

// CheckErase returns ErrInvalid unless an erasure of these users may be begun: as
// many as one call takes, and to receive what they have one valid other user if
// any.
func CheckErase(users []likes.UserID, into likes.UserID) error {
	if len(users) > MaxErase {
		return likes.Errorf(likes.ErrInvalid, "%d users to erase at once, want %d at most; none was erased", len(users), MaxErase)
	}
	for i, u := range users {
		if err := likes.CheckUser(u); err != nil {
			return likes.Errorf(likes.ErrInvalid, "users[%d]: %w; none was erased", i, err)
		}
	}
	switch {
	case into == 0:
		return nil
	case len(users) != 1:
		return likes.Errorf(likes.ErrInvalid, "%d users to merge into user %d, want one at a time; nothing was changed", len(users), into)
	case users[0] == into:
		return likes.Errorf(likes.ErrInvalid, "user %d cannot be merged into itself; nothing was changed", into)
	}
	return likes.CheckUser(into)
}

// CheckStep returns ErrInvalid unless a step of an erasure has 1 to MaxErase rows.
func CheckStep(limit int) error {
	if limit < 1 || limit > MaxErase {
		return likes.Errorf(likes.ErrInvalid, "a step of %d rows, want 1 to %d", limit, MaxErase)
	}
	return nil
}

// CheckBegun returns ErrInvalid if the record of an erasure that is there already
// contradicts one that is to be begun: into is whom the user is merged into, 0 if
// into nobody or if that has been forgotten since it has finished.
func CheckBegun(user likes.UserID, there Erasure, into, want likes.UserID) error {
	switch {
	case there.Merged && want == 0:
		return likes.Errorf(likes.ErrInvalid, "user %d was merged into another user, who has all of it: erase that one; nothing was changed", user)
	case !there.Merged && want != 0:
		return likes.Errorf(likes.ErrInvalid, "user %d is erased: there is nothing to merge into user %d; nothing was changed", user, want)
	case into != 0 && into != want:
		return likes.Errorf(likes.ErrInvalid, "user %d is being merged into user %d, not %d; nothing was changed", user, into, want)
	}
	return nil
}

// The other reasons why an erasure cannot be begun.

// ErrReceives is ErrInvalid for a user whom others are being merged into.
func ErrReceives(user likes.UserID) error {
	return likes.Errorf(likes.ErrInvalid, "user %d receives the likes of another user who is being merged into it: "+
		"let that merge finish, then repeat; nothing was changed", user)
}

// ErrGone is ErrInvalid for a user who is erased and cannot receive anything.
func ErrGone(into likes.UserID) error {
	return likes.Errorf(likes.ErrInvalid, "user %d is erased: nobody can be merged into it; nothing was changed", into)
}

// ErrNotBegun is ErrInvalid for a step of an erasure that has not begun.
func ErrNotBegun(user likes.UserID) error {
	return likes.Errorf(likes.ErrInvalid, "the erasure of user %d has not begun; nothing was erased", user)
}
