package likes

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// UserID names a user of the product. Valid ids are 1 to 2^63-1.
type UserID int64

// ItemID names an item within its [ItemType]. Valid ids are 1 to 2^63-1.
type ItemID int64

// ItemType is the kind of an item as it is stored, 1 to 32767. What a number
// means is configuration; see [DefaultItemTypes].
type ItemType int16

// Item names one thing that can be liked.
type Item struct {
	Type ItemType
	ID   ItemID
}

// Counter says what is counted of an item. There are two kinds. A set counter is
// the number of users who are in a relation to the item: it is derived from
// edges. A tally is a sum of events: it has no edges and cannot be recounted.
type Counter int16

// The counters. The numbers are stored and never change their meaning.
const (
	// Likes and Saves are sets.
	Likes Counter = 1
	Saves Counter = 4
	// Views and Shares are tallies.
	Views  Counter = 2
	Shares Counter = 3
)

// SetCounters returns the counters that are derived from edges, in order.
func SetCounters() []Counter { return []Counter{Likes, Saves} }

// Counters returns all counters, in order.
func Counters() []Counter { return []Counter{Likes, Views, Shares, Saves} }

// IsSet reports whether the counter is derived from edges.
func (c Counter) IsSet() bool { return c == Likes || c == Saves }

// IsTally reports whether the counter is a sum of events.
func (c Counter) IsTally() bool { return c == Views || c == Shares }

// String returns the counter's name on the wire.
func (c Counter) String() string {
	switch c {
	case Likes:
		return "likes"
	case Views:
		return "views"
	case Shares:
		return "shares"
	case Saves:
		return "saves"
	default:
		return "counter " + strconv.Itoa(int(c))
	}
}

// ParseCounter returns the counter of that name, or ErrInvalid.
func ParseCounter(name string) (Counter, error) {
	for _, c := range Counters() {
		if c.String() == name {
			return c, nil
		}
	}
	return 0, Errorf(ErrInvalid, "counter %q is unknown, want likes, saves, views or shares", clip(name))
}

// ParseSetCounter returns the set counter of that name, or ErrInvalid.
func ParseSetCounter(name string) (Counter, error) {
	switch c, err := ParseCounter(name); {
	case err != nil:
		return 0, Errorf(ErrInvalid, "counter %q is unknown, want likes or saves", clip(name))
	default:
		return c, CheckSet(c)
	}
}

// Edge is one user's relation to one item: the key of a [Register].
type Edge struct {
	Counter Counter
	Item    Item
	User    UserID
}

// String returns the edge as operators read it in logs and reports.
func (e Edge) String() string {
	return fmt.Sprintf("%s user %d item %d:%d", e.Counter, e.User, e.Item.Type, e.Item.ID)
}

// Compare orders edges by counter, item type, item and user: the order of the
// stores' primary key. Whoever locks several edges locks them in this order.
func (e Edge) Compare(o Edge) int {
	switch {
	case e.Counter != o.Counter:
		return order(e.Counter < o.Counter)
	case e.Item.Type != o.Item.Type:
		return order(e.Item.Type < o.Item.Type)
	case e.Item.ID != o.Item.ID:
		return order(e.Item.ID < o.Item.ID)
	case e.User != o.User:
		return order(e.User < o.User)
	default:
		return 0
	}
}

func order(less bool) int {
	if less {
		return -1
	}
	return 1
}

// Validate returns ErrInvalid that names the first part out of range.
func (e Edge) Validate() error {
	if err := CheckSet(e.Counter); err != nil {
		return err
	}
	if err := CheckUser(e.User); err != nil {
		return err
	}
	return e.Item.Validate()
}

// Validate returns ErrInvalid that names the first part out of range.
func (i Item) Validate() error {
	switch {
	case i.Type <= 0:
		return Errorf(ErrInvalid, "item_type %d is not a positive number", i.Type)
	case i.ID <= 0:
		return Errorf(ErrInvalid, "item_id %d is not a positive integer", i.ID)
	default:
		return nil
	}
}

// maxIDDigits is the length of 9223372036854775807.
const maxIDDigits = 19

// ParseID reads an id as it stands on the wire: decimal ASCII digits of a
// number from 1 to 2^63-1 in its one shortest form. Everything else that other
// parsers forgive ("01", "+1", " 1", "1.0", "1e3", digits of other scripts) is
// ErrInvalid, since two spellings of one id would be two users to a cache or a
// rate limiter in front.
func ParseID[T ~string | ~[]byte](s T) (int64, error) {
	if len(s) == 0 || len(s) > maxIDDigits || s[0] == '0' {
		return 0, errID(s)
	}
	var n uint64
	for i := range len(s) {
		d := s[i] - '0'
		if d > 9 {
			return 0, errID(s)
		}
		n = n*10 + uint64(d)
	}
	if n > 1<<63-1 {
		return 0, errID(s)
	}
	return int64(n), nil
}

func errID[T ~string | ~[]byte](s T) error {
	return Errorf(ErrInvalid, "%q is not an id: want 1 to 9223372036854775807 in plain digits", clip(s))
}

// clip bounds what an error quotes of the input.
func clip[T ~string | ~[]byte](s T) string {
	const shown = 40
	if len(s) > shown {
		return string(s[:shown]) + "…"
	}
	return string(s)
}

// ItemTypes maps item type names to their stored numbers and back. The zero
// value knows no type. It is safe for concurrent reading.
type ItemTypes struct {
	byName map[string]ItemType
	byType map[ItemType]string
}

// NewItemTypes returns the mapping, or ErrInvalid for an empty name, a number
// below 1, or a number with two names.
func NewItemTypes(byName map[string]ItemType) (ItemTypes, error) {
	m := ItemTypes{byName: make(map[string]ItemType, len(byName)), byType: make(map[ItemType]string, len(byName))}
	for name, t := range byName {
		if !validTypeName(name) {
			return ItemTypes{}, Errorf(ErrInvalid, "item type name %q: want 1 to 32 of a-z, 0-9, _ and -", name)
		}
		if t <= 0 {
			return ItemTypes{}, Errorf(ErrInvalid, "item type %s has the number %d, want 1 to 32767", name, t)
		}
		if other, ok := m.byType[t]; ok {
			return ItemTypes{}, Errorf(ErrInvalid, "item types %s and %s both have the number %d", other, name, t)
		}
		m.byName[name], m.byType[t] = t, name
	}
	return m, nil
}

// validTypeName keeps names free of what would need escaping in JSON, URLs and
// the "type:id" keys of batch answers.
func validTypeName(name string) bool {
	const longest = 32
	if name == "" || len(name) > longest {
		return false
	}
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// DefaultItemTypes returns the types a service knows unless configured
// otherwise: post 1, reel 2, comment 3.
func DefaultItemTypes() ItemTypes {
	m, err := NewItemTypes(map[string]ItemType{"post": 1, "reel": 2, "comment": 3})
	if err != nil {
		panic(err)
	}
	return m
}

// Type returns the stored number of an item type name.
func (m ItemTypes) Type(name string) (ItemType, bool) {
	t, ok := m.byName[name]
	return t, ok
}

// Names returns the names of the item types, by ascending number.
func (m ItemTypes) Names() []string {
	names := make([]string, 0, len(m.byType))
	for _, t := range slices.Sorted(maps.Keys(m.byType)) {
		names = append(names, m.byType[t])
	}
	return names
}

// TypeBytes is Type for a name still in a read buffer; it does not allocate.
func (m ItemTypes) TypeBytes(name []byte) (ItemType, bool) {
	t, ok := m.byName[string(name)]
	return t, ok
}

// Name returns the name of a stored item type, or its number in digits when the
// configuration does not name it.
func (m ItemTypes) Name(t ItemType) string {
	if name, ok := m.byType[t]; ok {
		return name
	}
	return strconv.Itoa(int(t))
}
