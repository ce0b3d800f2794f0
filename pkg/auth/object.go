package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// object reads a JSON object into its members. encoding/json alone takes the last
// of two equal names and "Sub" for "sub", so that two readers of one token could
// see two users; here a name counts as it is written and stands once
// (RFC 7519, 4; RFC 7515, 4).
func object(b []byte) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("it is no JSON object")
	}
	members := make(map[string]json.RawMessage)
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("it is no JSON object: %w", err)
		}
		name, _ := token.(string) // the decoder lets nothing else stand here
		if _, twice := members[name]; twice {
			return nil, fmt.Errorf("it has the member %.40q twice", name)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, fmt.Errorf("member %.40q: %w", name, err)
		}
		members[name] = value
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return nil, fmt.Errorf("it is no JSON object: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	return members, nil
}

// text returns a member that is a string, "" if there is none.
func text(members map[string]json.RawMessage, name string) (string, error) {
	raw, ok := members[name]
	if !ok {
		return "", nil
	}
	var s *string
	if err := json.Unmarshal(raw, &s); err != nil || s == nil {
		return "", fmt.Errorf("%s is no text", name)
	}
	return *s, nil
}

// texts returns a member that is a string or a list of strings.
func texts(members map[string]json.RawMessage, name string) ([]string, error) {
	raw, ok := members[name]
	if !ok {
		return nil, nil
	}
	if raw[0] != '[' {
		one, err := text(members, name)
		return []string{one}, err
	}
	var list []*string
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("%s is no list of texts", name)
	}
	values := make([]string, len(list))
	for i, s := range list {
		if s == nil {
			return nil, fmt.Errorf("%s is no list of texts", name)
		}
		values[i] = *s
	}
	return values, nil
}
