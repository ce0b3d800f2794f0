package httpapi

import (
	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/visibility"
)

// members reads the members of an object that is the whole body.
func (d *decoder) members(allowed, required fields, read func(fields) error) error {
	if err := d.open(); err != nil {
		return err
	}
	var seen fields
	for {
		f, err := d.next(&seen, allowed)
		switch {
		case err != nil:
			return err
		case f == 0:
			if err := d.require(seen, required); err != nil {
				return err
			}
			return d.end()
		}
		if err := read(f); err != nil {
			return err
		}
	}
}

// user reads an id into a place.
func (d *decoder) user(to *likes.UserID) error {
	id, err := d.id()
	*to = likes.UserID(id)
	return err
}

// itemChange reads the body of PUT /v1/items. What is absent stays as it is stored.
func (d *decoder) itemChange() (c store.ItemChange, err error) {
	const item = fItemID | fItemType
	err = d.members(item|fOwnerID|fVisibility|fState|fCounts, item, func(f fields) (err error) {
		var id int64
		switch f {
		case fItemID:
			id, err = d.id()
			c.Item.ID = likes.ItemID(id)
		case fItemType:
			c.Item.Type, err = d.itemType()
		case fOwnerID:
			c.Owner = new(likes.UserID)
			err = d.user(c.Owner)
		case fVisibility:
			err = word(d, "public, followers or private", &c.Level, visibility.Public, visibility.Followers, visibility.Private)
		case fState:
			err = word(d, "live, hidden or deleted", &c.State, visibility.Live, visibility.Hidden, visibility.Deleted)
		default:
			c.HideCounts, err = d.hideCounts()
		}
		return err
	})
	return c, err
}

// word reads one of some words.
func word[T interface{ String() string }](d *decoder, want string, to *T, words ...T) error {
	text, err := d.text(want + " in quotes")
	if err != nil {
		return err
	}
	for _, w := range words {
		if w.String() == string(text) {
			*to = w
			return nil
		}
	}
	return d.fail("%q is unknown, want %s", clip(text), want)
}

func (d *decoder) hideCounts() (*bool, error) {
	text, err := d.text("shown or hidden in quotes")
	if err != nil {
		return nil, err
	}
	for _, hide := range []bool{false, true} {
		if countsName(hide) == string(text) {
			return &hide, nil
		}
	}
	return nil, d.fail("%q is unknown, want shown or hidden", clip(text))
}

// block reads the body of PUT and DELETE /v1/blocks: who is blocked, and by whom or
// from what.
func (d *decoder) block() (b store.Block, err error) {
	err = d.members(fBlockerID|fItemID|fItemType|fBlockedID, fBlockedID, func(f fields) (err error) {
		var id int64
		switch f {
		case fBlockerID:
			err = d.user(&b.Blocker)
		case fBlockedID:
			err = d.user(&b.Blocked)
		case fItemID:
			id, err = d.id()
			b.Item.ID = likes.ItemID(id)
		default:
			b.Item.Type, err = d.itemType()
		}
		return err
	})
	switch {
	case err != nil:
		return b, err
	case b.Blocker != 0 && b.Item != likes.Item{}:
		return b, likes.Errorf(likes.ErrInvalid, "blocker_id: not allowed beside an item: want either")
	case b.Blocker == 0 && b.Item == likes.Item{}:
		return b, likes.Errorf(likes.ErrInvalid, "blocker_id: missing, and so is an item: want either")
	case b.Blocker == 0 && b.Item.ID == 0:
		return b, likes.Errorf(likes.ErrInvalid, "item_id: missing")
	case b.Blocker == 0 && b.Item.Type == 0:
		return b, likes.Errorf(likes.ErrInvalid, "item_type: missing")
	}
	return b, nil
}

// follow reads the body of PUT and DELETE /v1/follows.
func (d *decoder) follow() (f store.Follow, err error) {
	err = d.members(fFollowerID|fFolloweeID, fFollowerID|fFolloweeID, func(m fields) error {
		if m == fFollowerID {
			return d.user(&f.Follower)
		}
		return d.user(&f.Followee)
	})
	return f, err
}
