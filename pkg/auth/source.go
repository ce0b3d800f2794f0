package auth

import (
	"cmp"
	"slices"
	"strings"

	"likectl/pkg/likes"
	"likectl/pkg/outside"
)

// The algorithms of public keys (RFC 7518, 3.1; RFC 8037, 3.1). HS256 is the
// secret's alone: who could verify with a shared secret could also sign.
const (
	EdDSA = "EdDSA"
	ES256 = "ES256"
	RS256 = "RS256"
)

// Source is where public keys of an issuer come from, and what tokens signed with
// them may say.
type Source struct {
	// Name is what errors and logs call the source, such as "auth.keys[0]".
	Name string
	// File holds one public key in PEM, a JWK or a JWKS; URL answers a JWKS. One
	// of the two is set.
	File, URL string
	// Alg is the algorithm of the keys. Keys in a set that are for others, or not
	// for signatures, are passed over.
	Alg string
	// KID is the key id of a key that has none of its own. In a set it selects.
	KID string
	// Issuer and Audience are what iss must be and aud must contain.
	Issuer, Audience string
	// Scopes are those that the keys may give, at least one.
	Scopes []Scope
	// ScopeClaim is the claim with the scope: a text of words, or a list. Empty:
	// every token has the one scope in Scopes.
	ScopeClaim string
	// ScopeValues says what stands in the claim for a scope: its own name unless
	// it is in here.
	ScopeValues map[Scope]string
	// UserClaim is the claim with the user id, a text in the form that
	// likes.ParseID reads. Empty: sub.
	UserClaim string
}

// Check returns ErrInvalid that names the field out of range. It does no IO.
func (s *Source) Check() error {
	switch {
	case (s.File == "") == (s.URL == ""):
		return likes.Errorf(likes.ErrInvalid, "file: want either file or jwks_url")
	case s.Alg != EdDSA && s.Alg != ES256 && s.Alg != RS256:
		return likes.Errorf(likes.ErrInvalid, "alg: %.20q, want EdDSA, ES256 or RS256", s.Alg)
	case s.Issuer == "":
		return likes.Errorf(likes.ErrInvalid, "issuer: must not be empty")
	case s.Audience == "":
		return likes.Errorf(likes.ErrInvalid, "audience: must not be empty, or tokens for other services are accepted")
	case len(s.Scopes) == 0:
		return likes.Errorf(likes.ErrInvalid, "scopes: want at least one of user, service and admin")
	case s.ScopeClaim == "" && len(s.Scopes) > 1:
		return likes.Errorf(likes.ErrInvalid, "scope_claim: needed, since scopes has %d", len(s.Scopes))
	case s.ScopeClaim == "" && len(s.ScopeValues) > 0:
		return likes.Errorf(likes.ErrInvalid, "scope_values: read only with scope_claim")
	}
	for _, scope := range s.Scopes {
		if !slices.Contains(scopes[:], scope) {
			return likes.Errorf(likes.ErrInvalid, "scopes: %v is unknown", scope)
		}
	}
	if err := s.checkValues(); err != nil {
		return err
	}
	if s.URL != "" { // over https: whoever can change the answer makes the tokens
		if err := outside.CheckURL(s.URL); err != nil {
			return likes.Errorf(likes.ErrInvalid, "jwks_url: %w", err)
		}
	}
	return nil
}

// checkValues wants one word for each scope, and no word for two.
func (s *Source) checkValues() error {
	used := make(map[string]Scope)
	for _, scope := range scopes {
		value, given := s.ScopeValues[scope]
		if given && (value == "" || len(strings.Fields(value)) != 1 || strings.TrimSpace(value) != value) {
			return likes.Errorf(likes.ErrInvalid, "scope_values: %v: want one word", scope)
		}
		value = cmp.Or(value, scope.String())
		if other, taken := used[value]; taken {
			return likes.Errorf(likes.ErrInvalid, "scope_values: %q stands for %v and %v", value, other, scope)
		}
		used[value] = scope
	}
	for scope := range s.ScopeValues {
		if !slices.Contains(scopes[:], scope) {
			return likes.Errorf(likes.ErrInvalid, "scope_values: %v is unknown", scope)
		}
	}
	return nil
}
