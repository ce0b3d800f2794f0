package ingest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// jsonFormat reads lines that are JSON objects.
type jsonFormat struct{}

// parse implements format. Objects of plain strings and integers, nearly all,
// are read in place; everything else, and every error, is left to encoding/json.
func (jsonFormat) parse(line []byte, r *record) error {
	if parsePlain(line, r) {
		return nil
	}
	*r = record{}
	return parseTokens(line, r)
}

// parsePlain reads {"name":"text","name":123}. It returns false for whatever it
// does not know for sure to be right.
func parsePlain(line []byte, r *record) bool {
	s := scanner{line}
	if !s.take('{') {
		return false
	}
	for {
		name, ok := s.text()
		if !ok || !s.take(':') {
			return false
		}
		f := fieldOf(name)
		if f == noField || r[f] != nil {
			return false
		}
		value, ok := s.text()
		if !ok && f != itemType && f != action && f != counter {
			value, ok = s.integer()
		}
		if !ok {
			return false
		}
		r[f] = value
		if s.take('}') {
			return len(s.rest) == 0
		}
		if !s.take(',') {
			return false
		}
	}
}

// scanner reads tokens from the front of a line.
type scanner struct {
	rest []byte
}

func (s *scanner) space() {
	for len(s.rest) > 0 && (s.rest[0] == ' ' || s.rest[0] == '\t') {
		s.rest = s.rest[1:]
	}
}

func (s *scanner) take(c byte) bool {
	s.space()
	if len(s.rest) == 0 || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// text reads a string of printable ASCII without escapes.
func (s *scanner) text() ([]byte, bool) {
	s.space()
	if len(s.rest) == 0 || s.rest[0] != '"' {
		return nil, false
	}
	for i := 1; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == '"':
			value := s.rest[1:i:i]
			s.rest = s.rest[i+1:]
			return value, true
		case c == '\\' || c < ' ' || c > '~':
			return nil, false
		}
	}
	return nil, false
}

// integer reads digits that are not a part of another number.
func (s *scanner) integer() ([]byte, bool) {
	s.space()
	n := 0
	for n < len(s.rest) && s.rest[n] >= '0' && s.rest[n] <= '9' {
		n++
	}
	if n == 0 || n == len(s.rest) || n > 1 && s.rest[0] == '0' {
		return nil, false
	}
	switch s.rest[n] {
	case ',', '}', ' ', '\t':
		value := s.rest[:n:n]
		s.rest = s.rest[n:]
		return value, true
	default:
		return nil, false
	}
}

// parseTokens reads any object. Numbers stay as they are written, so that what
// is not an exact integer is refused and never rounded.
func parseTokens(line []byte, r *record) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if t, err := d.Token(); err != nil {
		return errJSON(err)
	} else if t != json.Delim('{') {
		return errors.New("it is not a JSON object")
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return errJSON(err)
		}
		name, _ := t.(string) // the decoder lets no other key pass
		f := fieldOf([]byte(name))
		switch {
		case f == noField:
			return errUnknown("it", "field", []byte(name))
		case r[f] != nil:
			return fmt.Errorf("it has the field %v twice", f)
		}
		if r[f], err = value(d, f); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return errJSON(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value on the line")
	}
	return nil
}

// value reads a field's value; it is never nil, so that a null counts as there.
func value(d *json.Decoder, f field) ([]byte, error) {
	t, err := d.Token()
	if err != nil {
		return nil, errJSON(err)
	}
	switch v := t.(type) {
	case nil:
		return []byte{}, nil
	case string:
		return append([]byte{}, v...), nil
	case json.Number:
		if f == userID || f == itemID || f == likedAt {
			return []byte(v), nil
		}
	}
	return nil, fmt.Errorf("%v is not a string", f)
}

func errJSON(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it ends too early")
	}
	return fmt.Errorf("it is not valid JSON: %w", err)
}
