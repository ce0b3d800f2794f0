package auth

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// claims are what a token carries, as it is written: nothing of it is believed
// before the signature has been checked with key.
type claims struct {
	members       map[string]json.RawMessage
	iss           string
	aud           []string
	exp, nbf, iat *jwt.NumericDate

	// key is the one that [ring.find] chose.
	key *key
}

var _ jwt.Claims = (*claims)(nil)

// UnmarshalJSON reads the claims strictly.
func (c *claims) UnmarshalJSON(b []byte) (err error) {
	if c.members, err = object(b); err != nil {
		return err
	}
	if c.iss, err = text(c.members, "iss"); err != nil {
		return err
	}
	if c.aud, err = texts(c.members, "aud"); err != nil {
		return err
	}
	for name, at := range map[string]**jwt.NumericDate{"exp": &c.exp, "nbf": &c.nbf, "iat": &c.iat} {
		if *at, err = date(c.members, name); err != nil {
			return err
		}
	}
	return nil
}

// maxDate is the end of the year 9999 in Unix seconds. Beyond it, times wrap
// around in one language or another.
const maxDate = 253402300799

// date returns a claim that is a number of seconds, nil if there is none.
func date(members map[string]json.RawMessage, name string) (*jwt.NumericDate, error) {
	raw, ok := members[name]
	if !ok {
		return nil, nil //nolint:nilnil // jwt.Claims has it so
	}
	seconds, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || math.Abs(seconds) > maxDate {
		return nil, fmt.Errorf("%s is no time", name)
	}
	whole, part := math.Modf(seconds)
	return jwt.NewNumericDate(time.Unix(int64(whole), int64(part*1e9))), nil
}

// GetExpirationTime returns exp.
func (c *claims) GetExpirationTime() (*jwt.NumericDate, error) { return c.exp, nil }

// GetNotBefore returns nbf.
func (c *claims) GetNotBefore() (*jwt.NumericDate, error) { return c.nbf, nil }

// GetIssuedAt returns iat.
func (c *claims) GetIssuedAt() (*jwt.NumericDate, error) { return c.iat, nil }

// GetAudience returns aud.
func (c *claims) GetAudience() (jwt.ClaimStrings, error) { return c.aud, nil }

// GetIssuer returns iss.
func (c *claims) GetIssuer() (string, error) { return c.iss, nil }

// GetSubject returns nothing: which claim names the user is the key's to say.
func (c *claims) GetSubject() (string, error) { return "", nil }
