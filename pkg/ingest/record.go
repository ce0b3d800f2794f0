package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"

	"likectl/pkg/likes"
)

// field is a column of an import file.
type field int

const (
	userID field = iota
	itemType
	itemID
	action
	likedAt
	counter
	numFields
	noField field = -1
)

// required is the number of fields that must be there, the first ones.
const required = int(itemID) + 1

func (f field) String() string {
	switch f {
	case userID:
		return "user_id"
	case itemType:
		return "item_type"
	case itemID:
		return "item_id"
	case action:
		return "action"
	case likedAt:
		return "liked_at"
	case counter:
		return "counter"
	case numFields, noField:
	}
	return "field " + strconv.Itoa(int(f))
}

// fieldOf returns the field of that name, or noField.
func fieldOf(name []byte) field {
	switch string(name) { // compiled without a conversion
	case "user_id":
		return userID
	case "item_type":
		return itemType
	case "item_id":
		return itemID
	case "action":
		return action
	case "liked_at":
		return likedAt
	case "counter":
		return counter
	default:
		return noField
	}
}

// errUnknown says what is wrong with a name that is no field's; what has it.
func errUnknown(what, kind string, name []byte) error {
	if string(name) == "pseudonym" {
		return fmt.Errorf("%s has pseudonyms in place of user ids: it was exported with --pseudonymise, "+
			"and whose likes they are cannot be told; import an export with ids", what)
	}
	return fmt.Errorf("%s has a %s %q; known are %s", what, kind, clip(name), fieldNames)
}

const fieldNames = "user_id, item_type, item_id, action, liked_at and counter"

// record is one line's fields, as text; an optional field without a value is
// empty.
type record [numFields][]byte

// mutation returns the replay that the record on a line stands for, its clock
// not ranked yet.
func (r *record) mutation(line int64, types likes.ItemTypes) (likes.Mutation, error) {
	m := likes.Mutation{Op: likes.Set, Edge: likes.Edge{Counter: likes.Likes}}
	for f := range required {
		if len(r[f]) == 0 {
			return m, fmt.Errorf("%v is missing", field(f))
		}
	}
	user, err := likes.ParseID(r[userID])
	if err != nil {
		return m, fmt.Errorf("user_id %w", err)
	}
	item, err := likes.ParseID(r[itemID])
	if err != nil {
		return m, fmt.Errorf("item_id %w", err)
	}
	kind, ok := types.TypeBytes(r[itemType])
	if !ok {
		return m, fmt.Errorf("item_type %q is not a configured name", clip(r[itemType]))
	}
	m.Edge.User, m.Edge.Item = likes.UserID(user), likes.Item{Type: kind, ID: likes.ItemID(item)}
	switch string(r[counter]) {
	case "", "likes":
	case "saves":
		m.Edge.Counter = likes.Saves
	case "views", "shares":
		return m, fmt.Errorf("counter %s is a tally, a sum of events without users, and cannot be imported; want likes or saves", r[counter])
	default:
		return m, fmt.Errorf("counter %q is unknown, want likes or saves", clip(r[counter]))
	}
	switch string(r[action]) {
	case "", "like":
	case "unlike":
		m.Op = likes.Clear
	default:
		return m, fmt.Errorf("action %q is unknown, want like or unlike", clip(r[action]))
	}
	return m, r.time(line, &m)
}

// time sets the mutation's clock and the beginning of its like.
func (r *record) time(line int64, m *likes.Mutation) error {
	m.Fixed = likes.ClockAt(likes.ClockEpoch().Add(time.Duration(line)*time.Microsecond), 0)
	text := r[likedAt]
	if len(text) == 0 {
		return nil
	}
	at, err := parseTime(text)
	if err != nil {
		return err
	}
	if m.Op == likes.Set {
		m.LikedAt = at
	}
	if at.Before(likes.ClockEpoch()) {
		return nil
	}
	// A replay's clock of 0 would mean that it has none.
	m.Fixed = max(likes.ClockAt(at, 0), 1)
	return nil
}

// parseTime reads an instant and refuses those beyond the greatest clock, which
// are milliseconds taken for seconds far more often than they are meant.
func parseTime(text []byte) (time.Time, error) {
	at, err := parseSeconds(text)
	if errors.Is(err, strconv.ErrSyntax) {
		if err = at.UnmarshalText(text); err != nil {
			at, err = parsePostgres(string(clip(text)))
		}
	}
	if err != nil {
		return at, fmt.Errorf("liked_at %q is neither RFC 3339 (2026-01-31T12:00:00Z), nor what Postgres prints (2026-01-31 12:00:00+00), "+
			"nor seconds since 1970", clip(text))
	}
	at = at.UTC()
	if at.Year() < 1 {
		return at, fmt.Errorf("liked_at %q is before the year 1", clip(text))
	}
	if latest := likes.MaxClock.Time(); !at.Before(latest) {
		return at, fmt.Errorf("liked_at %q is after %s; a number is seconds since 1970, not milliseconds",
			clip(text), latest.Format("2006"))
	}
	return at, nil
}

// parsePostgres reads a timestamptz as psql and COPY print it: the offset has
// minutes only where they are not 0. Without an offset it is no instant.
func parsePostgres(text string) (time.Time, error) {
	at, err := time.Parse("2006-01-02 15:04:05Z07", text)
	if err != nil {
		at, err = time.Parse("2006-01-02 15:04:05Z07:00", text)
	}
	return at, err
}

// maxSeconds keeps times inside the four-digit years that RFC 3339 can write.
const maxSeconds = 253402300799

// parseSeconds reads seconds since 1970, to the microsecond.
func parseSeconds(text []byte) (time.Time, error) {
	const places = 6
	digits, negative := bytes.CutPrefix(text, []byte("-"))
	whole, fraction, point := bytes.Cut(digits, []byte("."))
	if len(whole) == 0 || len(fraction) > places || point && len(fraction) == 0 {
		return time.Time{}, strconv.ErrSyntax
	}
	n, err := parseDigits(whole)
	if err != nil {
		return time.Time{}, err
	}
	micros, err := parseDigits(fraction)
	if err != nil {
		return time.Time{}, err
	}
	for range places - len(fraction) {
		micros *= 10
	}
	if negative {
		n, micros = -min(n, 62135596800), -micros // the year 1
	}
	return time.Unix(n, 1000*micros), nil
}

// parseDigits reads a number without sign, and a greater one as maxSeconds.
func parseDigits(text []byte) (int64, error) {
	var n int64
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, strconv.ErrSyntax
		}
		n = min(n*10+int64(c-'0'), maxSeconds)
	}
	return n, nil
}

// clip shortens what an error message quotes.
func clip(text []byte) []byte {
	const shown = 60
	if len(text) <= shown {
		return text
	}
	return append(text[:shown:shown], "…"...)
}
