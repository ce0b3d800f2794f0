package auth

import (
	"crypto"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// key is a verification key with the one algorithm it is for and with what its
// tokens may say.
type key struct {
	kid    string
	method jwt.SigningMethod
	verify any // as the method wants it
	policy *policy
}

// same says whether two keys accept the same tokens.
func (k *key) same(o *key) bool {
	if k == o || o == nil {
		return k == o
	}
	public, ok := k.verify.(interface{ Equal(crypto.PublicKey) bool })
	return ok && k.kid == o.kid && k.method == o.method && k.policy == o.policy && public.Equal(o.verify)
}

// keyID is how a token names its key. Both parts come from the token, before its
// signature is checked, and serve as map keys and for nothing else. The issuer is
// part of it so that no provider can displace a key of another one by publishing
// a key of the same kid.
type keyID struct{ issuer, kid string }

// ring holds the keys. It is never changed: a new one takes its place.
type ring map[keyID]*key

// newRing joins keys. Of two with one id the first stays; clash is told of the
// second.
func newRing(clash func(*key), sets ...[]*key) ring {
	r := make(ring)
	for _, k := range slices.Concat(sets...) {
		id := keyID{k.policy.issuer, k.kid}
		if _, taken := r[id]; taken {
			clash(k)
			continue
		}
		r[id] = k
	}
	return r
}

// keeps says whether every key of an earlier ring is in this one too.
func (r ring) keeps(earlier ring) bool {
	for id, k := range earlier {
		if !k.same(r[id]) {
			return false
		}
	}
	return true
}

// The reasons for which no key is found.
var (
	errHeader    = errors.New("its header is not what is read here")
	errNoKey     = errors.New("there is no key for its iss and kid")
	errAlgorithm = errors.New("its algorithm is not its key's")
)

// find returns the key for a token whose signature has not been checked yet.
func (r ring) find(t *jwt.Token) (any, error) {
	c, ok := t.Claims.(*claims)
	if !ok {
		return nil, errHeader
	}
	kid, err := header(t.Raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errHeader, err)
	}
	k := r[keyID{c.iss, kid}]
	switch {
	case k == nil:
		return nil, errNoKey
	case t.Method != k.method:
		return nil, errAlgorithm
	}
	c.key = k
	return k.verify, nil
}

// header checks the first part of a token and returns its kid. Where a header
// says where to find a key, or brings one (jku, jwk, x5u, x5c), it is not
// listened to: some issuers always send them, nothing here reads them.
func header(token string) (kid string, err error) {
	part, _, _ := strings.Cut(token, ".")
	b, err := base64.RawURLEncoding.Strict().DecodeString(part)
	if err != nil {
		return "", err
	}
	h, err := object(b)
	if err != nil {
		return "", err
	}
	// RFC 7515, 4.1.11: crit names what must be understood; nothing is. cty says
	// that a token is inside, b64 that the claims are not encoded.
	for _, name := range []string{"crit", "cty", "b64"} {
		if _, given := h[name]; given {
			return "", fmt.Errorf("%s is not supported", name)
		}
	}
	if err := typed(h); err != nil {
		return "", err
	}
	return text(h, "kid")
}

// typed refuses what says that it is another kind of token, such as a logout
// token of the same issuer (RFC 8725, 3.11). "at+jwt" is RFC 9068's.
func typed(h map[string]json.RawMessage) error {
	typ, err := text(h, "typ")
	if err != nil {
		return err
	}
	switch strings.TrimPrefix(strings.ToLower(typ), "application/") {
	case "", "jwt", "at+jwt":
		return nil
	default:
		return errors.New("typ is another kind of token")
	}
}
