package httpapi

import (
	"fmt"
	"strconv"

	"likectl/pkg/likes"
)

// decoder reads a request body: one JSON object of a known shape. It reads only
// what a shape has, so it needs no recursion and no depth limit, and it accepts a
// strict part of JSON (RFC 8259):
//
//   - every member at most once, none that is unknown, nothing behind the object;
//   - strings without escapes: all names, ids and types are plain ASCII;
//   - ids as strings or as bare digits. A number with a sign, fraction, exponent
//     or leading zero is refused and never rounded.
//
// Errors are ErrInvalid and name the entry and field: "items[3].item_id: …".
type decoder struct {
	b     []byte
	i     int
	types *likes.ItemTypes

	list  string // the list being read, "" outside of one
	index int
	field string // the member being read, "" outside of one
}

// fail returns an error at the place being read.
func (d *decoder) fail(format string, args ...any) error {
	where := d.field
	if d.list != "" {
		where = d.list + "[" + strconv.Itoa(d.index) + "]"
		if d.field != "" {
			where += "." + d.field
		}
	}
	if where == "" {
		where = "body"
	}
	return likes.Errorf(likes.ErrInvalid, "%s: %w", where, fmt.Errorf(format, args...))
}

// wrong returns an error that says what stands where something else should.
func (d *decoder) wrong(want string) error {
	if d.i >= len(d.b) {
		return d.fail("the JSON ends where %s should be", want)
	}
	return d.fail("want %s at byte %d, found %q", want, d.i, d.b[d.i])
}

// peek skips white space and returns the next byte, 0 at the end.
func (d *decoder) peek() byte {
	for d.i < len(d.b) {
		switch c := d.b[d.i]; c {
		case ' ', '\t', '\n', '\r':
			d.i++
		default:
			return c
		}
	}
	return 0
}

// expect skips white space and the one byte that must follow.
func (d *decoder) expect(c byte, name string) error {
	if d.peek() != c || d.i >= len(d.b) {
		return d.wrong(name)
	}
	d.i++
	return nil
}

// end makes sure that nothing follows.
func (d *decoder) end() error {
	d.field = ""
	if d.peek() != 0 || d.i < len(d.b) {
		return d.fail("something follows the JSON object at byte %d", d.i)
	}
	return nil
}

// text reads a string.
func (d *decoder) text(name string) ([]byte, error) {
	if err := d.expect('"', name); err != nil {
		return nil, err
	}
	for start := d.i; d.i < len(d.b); d.i++ {
		switch c := d.b[d.i]; {
		case c == '"':
			d.i++
			return d.b[start : d.i-1], nil
		case c == '\\':
			return nil, d.fail("escape sequence in a string at byte %d: none is needed here", d.i)
		case c < ' ' || c > '~':
			return nil, d.fail("a string has the byte %#x at %d: only plain ASCII is used here", c, d.i)
		}
	}
	return nil, d.wrong("the end of a string")
}

// id reads an id as a string or as bare digits.
func (d *decoder) id() (int64, error) {
	if c := d.peek(); c < '0' || c > '9' {
		text, err := d.text("an id in quotes or plain digits")
		if err != nil {
			return 0, err
		}
		return d.parsed(likes.ParseID(text))
	}
	start := d.i
	for d.i < len(d.b) && d.b[d.i] >= '0' && d.b[d.i] <= '9' {
		d.i++
	}
	if d.i < len(d.b) {
		switch d.b[d.i] {
		case '.', 'e', 'E', '+', '-':
			return 0, d.fail("want an integer in plain digits, found a number with %q", d.b[d.i])
		}
	}
	return d.parsed(likes.ParseID(d.b[start:d.i]))
}

func (d *decoder) parsed(n int64, err error) (int64, error) {
	if err != nil {
		return 0, d.fail("%w", err)
	}
	return n, nil
}

// next moves to the next member of an object, past its colon, and returns which
// one it is; 0 after the closing brace.
func (d *decoder) next(seen *fields, allowed fields) (fields, error) {
	d.field = ""
	switch c := d.peek(); {
	case c == '}':
		d.i++
		return 0, nil
	case *seen != 0:
		if err := d.expect(',', "a comma or the object's end"); err != nil {
			return 0, err
		}
	}
	key, err := d.text("a member's name in quotes")
	if err != nil {
		return 0, err
	}
	f := fieldOf(key)
	switch {
	case f&allowed == 0:
		return 0, d.fail("member %q is unknown, want %s", clip(key), allowed)
	case f&*seen != 0:
		return 0, d.fail("member %q is given twice", key)
	}
	*seen |= f
	d.field = f.String()
	return f, d.expect(':', "a colon")
}

// open moves into an object.
func (d *decoder) open() error { return d.expect('{', "a JSON object") }

// require makes sure that an object had the members it must have.
func (d *decoder) require(seen, required fields) error {
	if missing := required &^ seen; missing != 0 {
		d.field = (missing & -missing).String()
		return d.fail("missing")
	}
	return nil
}

// each reads a list with the function, entry by entry. An empty list is refused,
// and so is one of more than limit entries, before the rest of it is read.
func (d *decoder) each(limit int, read func() error) error {
	if err := d.expect('[', "a list"); err != nil {
		return err
	}
	name := d.field
	defer func() { d.list, d.index = "", 0 }()
	for n := 0; ; n++ {
		d.list, d.index, d.field = "", 0, name
		switch c := d.peek(); {
		case c == ']' && n > 0:
			d.i++
			return nil
		case c == ']':
			return d.fail("empty, want 1 to %d entries", limit)
		case n == limit:
			return d.fail("more than %d entries", limit)
		case n > 0:
			if err := d.expect(',', "a comma or the list's end"); err != nil {
				return err
			}
		}
		d.list, d.index, d.field = name, n, ""
		if err := read(); err != nil {
			return err
		}
	}
}

// clip bounds what an error quotes of the input.
func clip(b []byte) string {
	const longest = 40
	if len(b) > longest {
		return string(b[:longest]) + "…"
	}
	return string(b)
}
