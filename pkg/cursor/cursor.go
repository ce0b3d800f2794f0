// Package cursor encodes where a page of a listing ended. A cursor carries the
// listing it belongs to, so that one of another item, user or counter is refused
// instead of silently starting in the wrong place. It is not a secret and not
// signed: all it can do is position its holder in a listing that he may read.
package cursor

import (
	"encoding/base64"
	"encoding/binary"

	"likectl/pkg/likes"
)

// The listings. A number is never used again for another format.
const (
	likers  = 1
	likedBy = 2
)

// Sizes of the fixed formats: kind, counter, type and id or user, then the
// position.
const (
	likersLen  = 1 + 2 + 2 + 8 + 8
	likedByLen = 1 + 2 + 8 + 2 + 8
)

// Likers returns the cursor of an item's likers after the given user.
func Likers(c likes.Counter, item likes.Item, after likes.UserID) likes.Cursor {
	b := listingOfItem(c, item)
	return encode(binary.BigEndian.AppendUint64(b, uint64(after)))
}

// ParseLikers returns the user that a cursor of this item's likers stopped at, 0
// for the empty cursor, or ErrInvalid.
func ParseLikers(cur likes.Cursor, c likes.Counter, item likes.Item) (likes.UserID, error) {
	if cur == "" {
		return 0, nil
	}
	rest, err := decode(cur, listingOfItem(c, item), likersLen)
	if err != nil {
		return 0, err
	}
	after := likes.UserID(binary.BigEndian.Uint64(rest))
	if after <= 0 {
		return 0, errCursor()
	}
	return after, nil
}

// LikedBy returns the cursor of a user's items after the given one.
func LikedBy(c likes.Counter, user likes.UserID, after likes.Item) likes.Cursor {
	b := listingOfUser(c, user)
	b = binary.BigEndian.AppendUint16(b, uint16(after.Type))
	return encode(binary.BigEndian.AppendUint64(b, uint64(after.ID)))
}

// ParseLikedBy returns the item that a cursor of this user's items stopped at,
// the zero Item for the empty cursor, or ErrInvalid.
func ParseLikedBy(cur likes.Cursor, c likes.Counter, user likes.UserID) (likes.Item, error) {
	if cur == "" {
		return likes.Item{}, nil
	}
	rest, err := decode(cur, listingOfUser(c, user), likedByLen)
	if err != nil {
		return likes.Item{}, err
	}
	after := likes.Item{Type: likes.ItemType(binary.BigEndian.Uint16(rest)), ID: likes.ItemID(binary.BigEndian.Uint64(rest[2:]))}
	if after.Validate() != nil {
		return likes.Item{}, errCursor()
	}
	return after, nil
}

func listingOfItem(c likes.Counter, item likes.Item) []byte {
	b := make([]byte, 0, likersLen)
	b = append(b, likers)
	b = binary.BigEndian.AppendUint16(b, uint16(c))
	b = binary.BigEndian.AppendUint16(b, uint16(item.Type))
	return binary.BigEndian.AppendUint64(b, uint64(item.ID))
}

func listingOfUser(c likes.Counter, user likes.UserID) []byte {
	b := make([]byte, 0, likedByLen)
	b = append(b, likedBy)
	b = binary.BigEndian.AppendUint16(b, uint16(c))
	return binary.BigEndian.AppendUint64(b, uint64(user))
}

func encode(b []byte) likes.Cursor {
	return likes.Cursor(base64.RawURLEncoding.EncodeToString(b))
}

// decode returns what follows the listing in a cursor of the given length.
func decode(cur likes.Cursor, listing []byte, length int) ([]byte, error) {
	if len(cur) != base64.RawURLEncoding.EncodedLen(length) {
		return nil, errCursor()
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(string(cur))
	// The decoder skips line breaks, so the length must be looked at again.
	if err != nil || len(b) != length || string(b[:len(listing)]) != string(listing) {
		return nil, errCursor()
	}
	return b[len(listing):], nil
}

func errCursor() error {
	return likes.Errorf(likes.ErrInvalid, "cursor does not belong to this listing; start again without one")
}
