package auth

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"likectl/pkg/likes"
)

// policy is what tokens of a key may say. It is never changed, so keys share it.
type policy struct {
	issuer string
	times  *jwt.Validator // exp, nbf, iat, and the iss and aud that are wanted
	now    func() time.Time
	// user is the claim with the user id.
	user string
	// scope is the claim with the scopes, or "": then each token has grants[0].
	scope string
	// names maps what stands in the claim.
	names map[string]Scope
	// grants are the scopes that the key may give.
	grants []Scope
	// exact wants the claim to be one known name and nothing else.
	exact bool
}

// newPolicy returns the policy of a source.
func newPolicy(s *Source, leeway time.Duration, now func() time.Time) *policy {
	p := &policy{
		issuer: s.Issuer, now: now, user: s.UserClaim, scope: s.ScopeClaim,
		names: make(map[string]Scope), grants: slices.Clone(s.Scopes),
		times: jwt.NewValidator(
			jwt.WithIssuer(s.Issuer),
			jwt.WithAudience(s.Audience),
			jwt.WithLeeway(leeway),
			jwt.WithExpirationRequired(),
			jwt.WithIssuedAt(),
			jwt.WithTimeFunc(now),
		),
	}
	if p.user == "" {
		p.user = "sub"
	}
	for _, scope := range scopes {
		name := s.ScopeValues[scope]
		if name == "" {
			name = scope.String()
		}
		p.names[name] = scope
	}
	return p
}

// identity returns who calls, from claims whose signature is good.
func (p *policy) identity(c *claims) (Identity, error) {
	if err := p.times.Validate(c); err != nil {
		return Identity{}, err
	}
	if c.exp.Sub(p.now()) > MaxTTL+maxLeeway {
		return Identity{}, fmt.Errorf("%w: its exp is more than ten years ahead", ErrToken)
	}
	name, err := text(c.members, p.user)
	if err != nil {
		return Identity{}, fmt.Errorf("%w: %w", ErrToken, err)
	}
	user, err := likes.ParseID(name)
	if err != nil {
		return Identity{}, fmt.Errorf("%w: %s: %s", ErrToken, p.user, err.Error()) // not ErrInvalid: that is the request's fault
	}
	scope, err := p.scopeOf(c)
	if err != nil {
		return Identity{}, fmt.Errorf("%w: %s", ErrToken, err.Error())
	}
	return Identity{User: likes.UserID(user), Scope: scope}, nil
}

// scopeOf returns the one scope that the token names and the key may give. A
// provider's claim lists scopes of other services too; those are passed over.
// Two of ours are refused rather than ranked.
func (p *policy) scopeOf(c *claims) (Scope, error) {
	if p.scope == "" {
		return p.grants[0], nil
	}
	var found Scope
	if p.exact {
		name, err := text(c.members, p.scope)
		if err != nil {
			return 0, err
		}
		if found, err = ParseScope(name); err != nil {
			return 0, err
		}
	} else {
		values, err := texts(c.members, p.scope)
		if err != nil {
			return 0, err
		}
		for _, name := range strings.Fields(strings.Join(values, " ")) {
			s, ok := p.names[name]
			if ok && found != 0 && found != s {
				return 0, fmt.Errorf("%s names both %v and %v", p.scope, found, s)
			}
			found = max(found, s)
		}
	}
	switch {
	case found == 0:
		return 0, fmt.Errorf("%s names no scope of this service", p.scope)
	case !slices.Contains(p.grants, found):
		return 0, errGrant
	}
	return found, nil
}

var errGrant = errors.New("its key may not give the scope that it names")
