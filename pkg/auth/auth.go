package auth

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"likectl/pkg/likes"
)

const (
	// SecretSize is the secret's length in bytes: what HMAC-SHA-256 gives, below
	// which RFC 7518 (3.2) forbids to go.
	SecretSize = 32

	// MaxToken is the longest token that is looked at, in bytes. Ours have
	// about 250; other issuers add claims.
	MaxToken = 4096

	// maxLeeway bounds the tolerated clock difference: more would keep expired
	// tokens alive rather than forgive a clock.
	maxLeeway = 5 * time.Minute

	// MaxTTL bounds the life of a minted token.
	MaxTTL = 10 * 365 * 24 * time.Hour
)

// Config says whose tokens are accepted.
type Config struct {
	// Secret is the signing key, SecretSize bytes.
	Secret []byte
	// Issuer and Audience are what iss must be and aud must contain; both are
	// also written into minted tokens.
	Issuer, Audience string
	// Leeway is the clock difference tolerated in exp, nbf and iat, 0 to 5 min.
	Leeway time.Duration
	// CacheSize is the number of verified tokens remembered, at least 1.
	CacheSize int
}

// Default returns the configuration for a secret unless anything else is said.
func Default(secret []byte) Config {
	return Config{Secret: secret, Issuer: "likectl", Audience: "likectl", Leeway: 30 * time.Second, CacheSize: 50_000}
}

// Identity is what a verified token says about the caller.
type Identity struct {
	User  likes.UserID
	Scope Scope
}

// Authority mints and verifies tokens. It is safe for concurrent use.
type Authority struct {
	cfg    Config
	secret *key
	parser *jwt.Parser
	now    func() time.Time

	state atomic.Pointer[state]
	keys  *keeper // of an authority that was opened, else nil
}

// state is a ring with the tokens that its keys have verified. A key that is
// removed takes the cache with it: a Verify that began before ends in the old
// cache, which nobody asks any more.
type state struct {
	ring  ring
	cache *cache
}

// New returns an authority whose one key is the secret, or ErrInvalid that names
// what is out of range.
func New(cfg Config) (*Authority, error) {
	switch {
	case len(cfg.Secret) != SecretSize:
		return nil, likes.Errorf(likes.ErrInvalid, "secret has %d bytes, want %d", len(cfg.Secret), SecretSize)
	case cfg.Issuer == "":
		return nil, likes.Errorf(likes.ErrInvalid, "issuer is empty")
	case cfg.Audience == "":
		return nil, likes.Errorf(likes.ErrInvalid, "audience is empty")
	case cfg.Leeway < 0 || cfg.Leeway > maxLeeway:
		return nil, likes.Errorf(likes.ErrInvalid, "leeway %v, want 0 to %v", cfg.Leeway, maxLeeway)
	case cfg.CacheSize < 1:
		return nil, likes.Errorf(likes.ErrInvalid, "cache size %d, want at least 1", cfg.CacheSize)
	}
	cfg.Secret = slices.Clone(cfg.Secret)
	a := &Authority{cfg: cfg, now: time.Now}
	a.parser = jwt.NewParser(
		// A first refusal before a key is looked for; the key then wants its one.
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg(), EdDSA, ES256, RS256}),
		// Of one token there shall be one spelling: the cache is keyed by it.
		jwt.WithStrictDecoding(),
		// What the claims have to be is the key's policy.
		jwt.WithoutClaimsValidation(),
	)
	p := a.policy(&Source{Issuer: cfg.Issuer, Audience: cfg.Audience, Scopes: scopes[:], ScopeClaim: "scope"})
	p.exact = true
	a.secret = &key{method: jwt.SigningMethodHS256, verify: cfg.Secret, policy: p}
	a.state.Store(&state{newRing(nil, []*key{a.secret}), newCache(cfg.CacheSize)}) // one key clashes with none
	return a, nil
}

func (a *Authority) policy(s *Source) *policy {
	return newPolicy(s, a.cfg.Leeway, func() time.Time { return a.now() })
}

// The reasons why a token is not accepted. The texts are fit for the caller:
// they say nothing about the key.
var (
	// ErrExpired: the token was good once; a new one is needed.
	ErrExpired = errors.New("token has expired")
	// ErrToken: the token is malformed, forged or meant for somebody else.
	ErrToken = errors.New("token is not valid")
)

// Verify returns what the token says, or an error that is ErrExpired or ErrToken.
// A token seen before costs a look-up and no allocation. A token whose issuer may
// have a new key waits, briefly, until its keys have been read again.
func (a *Authority) Verify(token string) (Identity, error) {
	s := a.state.Load()
	if id, ok := s.cache.get(token, a.now().UnixNano()); ok {
		return id, nil
	}
	if len(token) > MaxToken {
		return Identity{}, fmt.Errorf("%w: it has %d bytes, at most %d are read", ErrToken, len(token), MaxToken)
	}
	if strings.ContainsAny(token, "\r\n") {
		// base64 decoders skip line breaks: one token would have many spellings.
		return Identity{}, ErrToken
	}
	issuer, id, err := a.verify(s, token)
	if errors.Is(err, errNoKey) && a.keys != nil && a.keys.await(issuer) {
		_, id, err = a.verify(a.state.Load(), token)
	}
	if err != nil {
		return Identity{}, reason(err)
	}
	return id, nil
}

// verify checks a token that is not remembered. The issuer is what the token
// says, believed or not.
func (a *Authority) verify(s *state, token string) (issuer string, id Identity, err error) {
	var c claims
	if _, err := a.parser.ParseWithClaims(token, &c, s.ring.find); err != nil {
		return c.iss, Identity{}, err
	}
	id, err = c.key.policy.identity(&c)
	if err != nil {
		return c.iss, Identity{}, err
	}
	s.cache.put(token, id, c.exp.Add(a.cfg.Leeway).UnixNano())
	return c.iss, id, nil
}

// reason names the claim that failed, once the signature was good. The library
// checks the signature first, so claims of forged tokens are never talked about.
func reason(err error) error {
	switch {
	case errors.Is(err, jwt.ErrTokenExpired):
		return ErrExpired
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return fmt.Errorf("%w: it lacks exp, iss or aud", ErrToken)
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		return fmt.Errorf("%w: its nbf is in the future", ErrToken)
	case errors.Is(err, jwt.ErrTokenUsedBeforeIssued):
		return fmt.Errorf("%w: its iat is in the future", ErrToken)
	case errors.Is(err, jwt.ErrTokenInvalidIssuer):
		return fmt.Errorf("%w: its iss is another issuer", ErrToken)
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return fmt.Errorf("%w: its aud is another audience", ErrToken)
	case errors.Is(err, errNoKey):
		return fmt.Errorf("%w: %w", ErrToken, errNoKey)
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return fmt.Errorf("%w: it is not signed with the secret or a key of this server", ErrToken)
	case errors.Is(err, ErrToken):
		return err
	default:
		return ErrToken
	}
}

// Mint returns a token for the user that is valid for ttl from now, or
// ErrInvalid for a user, scope or ttl out of range.
func (a *Authority) Mint(user likes.UserID, scope Scope, ttl time.Duration) (string, error) {
	if err := likes.CheckUser(user); err != nil {
		return "", err
	}
	if _, err := ParseScope(scope.String()); err != nil {
		return "", err
	}
	if ttl < time.Second || ttl > MaxTTL {
		return "", likes.Errorf(likes.ErrInvalid, "ttl %v, want 1s to %v", ttl, MaxTTL)
	}
	now := a.now()
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, minted{
		Scope: scope.String(),
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer:    a.cfg.Issuer,
			Audience:  jwt.ClaimStrings{a.cfg.Audience},
			Subject:   strconv.FormatInt(int64(user), 10),
			IssuedAt:  jwt.NewNumericDate(now),
			ExpiresAt: jwt.NewNumericDate(now.Add(ttl)),
		},
	}).SignedString(a.cfg.Secret)
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	return token, nil
}

// minted are the claims of our own tokens.
type minted struct {
	Scope string `json:"scope"`
	jwt.RegisteredClaims
}
