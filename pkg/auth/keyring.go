package auth

import (
	"fmt"
	"slices"

	"github.com/golang-jwt/jwt/v5"
)

// key is a verification key with the one algorithm it is for.
type key struct {
	method jwt.SigningMethod
	verify any
}

// keyring holds the keys by the key id (kid) of the token's header. Tokens
// without a kid are for the key "".
type keyring struct {
	byID   map[string]key
	secret []byte
}

func newKeyring(secret []byte) keyring {
	secret = slices.Clone(secret)
	return keyring{byID: map[string]key{"": {method: jwt.SigningMethodHS256, verify: secret}}, secret: secret}
}

// algorithms returns those of any key, for a first refusal before a key is
// looked for.
func (k keyring) algorithms() []string {
	var names []string
	for _, key := range k.byID {
		if !slices.Contains(names, key.method.Alg()) {
			names = append(names, key.method.Alg())
		}
	}
	return names
}

// find returns the key for a token whose signature has not been checked yet.
func (k keyring) find(t *jwt.Token) (any, error) {
	id, ok := "", true
	if kid, given := t.Header["kid"]; given {
		id, ok = kid.(string)
	}
	key, known := k.byID[id]
	switch {
	case !ok || !known:
		return nil, fmt.Errorf("key id %v is unknown", t.Header["kid"])
	case t.Method != key.method:
		return nil, fmt.Errorf("algorithm %s is not the key's", t.Method.Alg())
	case t.Header["crit"] != nil:
		// RFC 7515, 4.1.11: an extension that must be understood and is not.
		return nil, fmt.Errorf("critical header extensions are not known")
	}
	return key.verify, nil
}

func (k keyring) sign(c *claims) (string, error) {
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString(k.secret)
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	return token, nil
}
