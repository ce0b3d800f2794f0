package store

import (
	"cmp"

	"likectl/pkg/likes"
	"likectl/pkg/visibility"
)

// The rules of a [Catalog] that do not depend on the technology. They live here so
// that all stores and the oracle refuse the same calls with the same words.

// Over returns the row that the change leaves over an old one; the zero Item stands
// for one without a row.
func (c ItemChange) Over(old visibility.Item) visibility.Item {
	now := visibility.Item{
		Item:       c.Item,
		Owner:      old.Owner,
		Level:      cmp.Or(c.Level, old.Level, visibility.Public),
		State:      cmp.Or(c.State, old.State, visibility.Live),
		HideCounts: old.HideCounts,
	}
	if c.Owner != nil {
		now.Owner = *c.Owner
	}
	if c.HideCounts != nil {
		now.HideCounts = *c.HideCounts
	}
	return now
}

// Validate returns ErrInvalid that names the first part out of range.
func (c ItemChange) Validate() error {
	switch {
	case c.Owner != nil && *c.Owner < 0:
		return likes.Errorf(likes.ErrInvalid, "owner_id %d is neither a positive integer nor 0 for nobody", *c.Owner)
	case c.Level > visibility.Private:
		return likes.Errorf(likes.ErrInvalid, "visibility: there is no %v, want public, followers or private", c.Level)
	case c.State > visibility.Deleted:
		return likes.Errorf(likes.ErrInvalid, "state: there is no %v, want live, hidden or deleted", c.State)
	default:
		return c.Item.Validate()
	}
}

// Validate returns ErrInvalid unless the block names a user and either another user
// or an item.
func (b Block) Validate() error {
	of := b.Item != likes.Item{}
	switch {
	case b.Blocked <= 0:
		return likes.Errorf(likes.ErrInvalid, "blocked_id %d is not a positive integer", b.Blocked)
	case b.Blocker < 0:
		return likes.Errorf(likes.ErrInvalid, "blocker_id %d is not a positive integer", b.Blocker)
	case of == (b.Blocker > 0):
		return likes.Errorf(likes.ErrInvalid, "a block has either a blocker_id or an item_id with its item_type, not both or neither")
	case b.Blocker == b.Blocked:
		return likes.Errorf(likes.ErrInvalid, "blocked_id %d is the blocker_id: nobody can block themselves", b.Blocked)
	case of:
		return b.Item.Validate()
	default:
		return nil
	}
}

// Validate returns ErrInvalid unless the follow names two users.
func (f Follow) Validate() error {
	switch {
	case f.Follower <= 0:
		return likes.Errorf(likes.ErrInvalid, "follower_id %d is not a positive integer", f.Follower)
	case f.Followee <= 0:
		return likes.Errorf(likes.ErrInvalid, "followee_id %d is not a positive integer", f.Followee)
	case f.Follower == f.Followee:
		return likes.Errorf(likes.ErrInvalid, "followee_id %d is the follower_id: nobody can follow themselves", f.Followee)
	default:
		return nil
	}
}

// CheckFacts returns ErrInvalid if the viewer is neither a user nor 0, there are
// more than [likes.MaxRead] items, or one is malformed.
func CheckFacts(viewer likes.UserID, items []likes.Item) error {
	if err := checkViewer(viewer); err != nil {
		return err
	}
	if n := len(items); n > likes.MaxRead {
		return likes.Errorf(likes.ErrInvalid, "%d items in one call, want at most %d", n, likes.MaxRead)
	}
	for i, item := range items {
		if err := item.Validate(); err != nil {
			return likes.Errorf(likes.ErrInvalid, "items[%d]: %w", i, err)
		}
	}
	return nil
}

// CheckBlocked returns ErrInvalid if the viewer is neither a user nor 0, there are
// more than [likes.MaxPage] users, or one is none.
func CheckBlocked(viewer likes.UserID, users []likes.UserID) error {
	if err := checkViewer(viewer); err != nil {
		return err
	}
	if n := len(users); n > likes.MaxPage {
		return likes.Errorf(likes.ErrInvalid, "%d users in one call, want at most %d", n, likes.MaxPage)
	}
	for i, user := range users {
		if err := likes.CheckUser(user); err != nil {
			return likes.Errorf(likes.ErrInvalid, "users[%d]: %w", i, err)
		}
	}
	return nil
}

func checkViewer(viewer likes.UserID) error {
	if viewer < 0 {
		return likes.Errorf(likes.ErrInvalid, "the viewer's user_id %d is neither a positive integer nor 0 for nobody", viewer)
	}
	return nil
}

// Names returns whom a change would write into a row. A store refuses it with
// ErrErased if one of them is erased ([People]): nothing may come to be that names
// an erased user.
func (c ItemChange) Names() []likes.UserID {
	if c.Owner == nil || *c.Owner == 0 {
		return nil
	}
	return []likes.UserID{*c.Owner}
}

// Names returns whom the block would write into a row; see [ItemChange.Names].
func (b Block) Names() []likes.UserID {
	if b.Blocker == 0 {
		return []likes.UserID{b.Blocked}
	}
	return []likes.UserID{b.Blocker, b.Blocked}
}

// Names returns whom the follow would write into a row; see [ItemChange.Names].
func (f Follow) Names() []likes.UserID { return []likes.UserID{f.Follower, f.Followee} }

// Named returns the users of a relation that is to be there, and nobody of one that
// is to go.
func Named(on bool, names []likes.UserID) []likes.UserID {
	if on {
		return names
	}
	return nil
}
