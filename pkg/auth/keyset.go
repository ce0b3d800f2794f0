package auth

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/golang-jwt/jwt/v5"
)

// The sizes of RSA keys: the least of RFC 7518 (3.3), and a greatest so that a
// provider cannot make every check slow.
const (
	minRSA = 2048
	maxRSA = 8192
)

// parseKeys returns the keys in a document: PEM, a JWK, or a JWKS. A key of a set
// that is meant for something else is passed over; one that ought to be good and
// is not is named in bad. The error says that the document itself is not read.
func parseKeys(doc []byte, s *Source, p *policy) (keys []*key, bad []error, err error) {
	doc = bytes.TrimSpace(doc)
	if !bytes.HasPrefix(doc, []byte("{")) {
		k, err := parsePEM(doc, s, p)
		if err != nil {
			return nil, nil, err
		}
		return []*key{k}, nil, nil
	}
	members, err := object(doc)
	if err != nil {
		return nil, nil, err
	}
	var set []json.RawMessage
	switch list, isSet := members["keys"]; {
	case !isSet:
		set = []json.RawMessage{doc}
		if _, isKey := members["kty"]; !isKey {
			return nil, nil, errors.New("it is neither a JWK nor a JWKS: it has neither kty nor keys")
		}
	case list[0] != '[' || json.Unmarshal(list, &set) != nil:
		return nil, nil, errors.New("keys is no list")
	}
	for i, raw := range set {
		k, err := parseJWK(raw, s, p)
		switch {
		case err == nil && k == nil: // for something else
		case err == nil && slices.ContainsFunc(keys, func(o *key) bool { return o.kid == k.kid }):
			bad = append(bad, fmt.Errorf("key %d: there is one before it with the kid %.80q", i, k.kid))
		case err != nil:
			bad = append(bad, fmt.Errorf("key %d: %w", i, err))
		default:
			keys = append(keys, k)
		}
	}
	return keys, bad, nil
}

// parsePEM reads the one public key of a PEM file.
func parsePEM(doc []byte, s *Source, p *policy) (*key, error) {
	block, rest := pem.Decode(doc)
	switch {
	case block == nil:
		return nil, errors.New("it is neither PEM nor JSON")
	case block.Type != "PUBLIC KEY":
		return nil, fmt.Errorf("it holds a %s, want a PUBLIC KEY: openssl pkey -in PRIVATE -pubout makes one", block.Type)
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, errors.New("something follows the key: want one key in a PEM file")
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	return newKey(s.KID, s.Alg, public, p)
}

// newKey returns the key if it is one of the algorithm and strong enough.
func newKey(kid, alg string, public any, p *policy) (*key, error) {
	k := &key{kid: kid, verify: public, policy: p}
	switch public := public.(type) {
	case ed25519.PublicKey:
		k.method = jwt.SigningMethodEdDSA
	case *ecdsa.PublicKey:
		if public.Curve != elliptic.P256() {
			return nil, fmt.Errorf("it is on the curve %s, want P-256", public.Curve.Params().Name)
		}
		k.method = jwt.SigningMethodES256
	case *rsa.PublicKey:
		if n := public.N.BitLen(); n < minRSA || n > maxRSA {
			return nil, fmt.Errorf("it is an RSA key of %d bits, want %d to %d", n, minRSA, maxRSA)
		}
		if public.E < 3 || public.E%2 == 0 {
			return nil, fmt.Errorf("its RSA exponent is %d", public.E)
		}
		k.method = jwt.SigningMethodRS256
	default:
		return nil, fmt.Errorf("it is a %T", public)
	}
	if k.method.Alg() != alg {
		return nil, fmt.Errorf("it is a key for %s, alg says %s", k.method.Alg(), alg)
	}
	return k, nil
}

// parseJWK reads a key of a set (RFC 7517, RFC 8037). It returns nil for one that
// is not for this source.
func parseJWK(raw json.RawMessage, s *Source, p *policy) (*key, error) {
	members, err := object(raw)
	if err != nil {
		return nil, err
	}
	value := make(map[string]string)
	kty := map[string]string{EdDSA: "OKP", ES256: "EC", RS256: "RSA"}
	crv := map[string]string{EdDSA: "Ed25519", ES256: "P-256"}
	for _, name := range []string{"kty", "kid", "alg", "use", "crv", "x", "y", "n", "e"} {
		if value[name], err = text(members, name); err != nil {
			return nil, err
		}
	}
	ops, err := texts(members, "key_ops")
	if err != nil {
		return nil, err
	}
	kid := value["kid"]
	if kid == "" {
		kid = s.KID
	}
	switch {
	case value["kty"] != kty[s.Alg], value["crv"] != crv[s.Alg] && s.Alg != RS256,
		value["alg"] != "" && value["alg"] != s.Alg,
		value["use"] != "" && value["use"] != "sig",
		ops != nil && !slices.Contains(ops, "verify"),
		s.KID != "" && kid != s.KID:
		return nil, nil
	}
	if _, private := members["d"]; private {
		return nil, errors.New("it is a private key: whoever can read it makes tokens; publish the public one")
	}
	public, err := publicKey(value)
	if err != nil {
		return nil, err
	}
	return newKey(kid, s.Alg, public, p)
}

// publicKey makes a key of its numbers.
func publicKey(value map[string]string) (any, error) {
	number := make(map[string][]byte)
	for _, name := range []string{"x", "y", "n", "e"} {
		b, err := base64.RawURLEncoding.Strict().DecodeString(value[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		number[name] = b
	}
	switch x, y := number["x"], number["y"]; value["kty"] {
	case "OKP":
		if len(x) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("x has %d bytes, want %d", len(x), ed25519.PublicKeySize)
		}
		return ed25519.PublicKey(x), nil
	case "EC":
		const size = 32 // RFC 7518, 6.2.1.2: leading zeros are not left out
		if len(x) != size || len(y) != size {
			return nil, fmt.Errorf("x and y have %d and %d bytes, want %d", len(x), len(y), size)
		}
		return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{4}, x, y))
	default:
		e := new(big.Int).SetBytes(number["e"])
		if !e.IsInt64() || e.Int64() > 1<<31-1 {
			return nil, errors.New("e is too large")
		}
		return &rsa.PublicKey{N: new(big.Int).SetBytes(number["n"]), E: int(e.Int64())}, nil
	}
}
