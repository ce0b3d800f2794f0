package auth

import (
	"strconv"

	"likectl/pkg/likes"
)

// Scope says what a token is good for. A greater one includes the smaller.
type Scope uint8

// The scopes.
const (
	// User acts for the token's own user.
	User Scope = iota + 1
	// Service acts for any user, who is named in each call.
	Service
	// Admin is Service plus the administration.
	Admin
)

// scopes are all of them.
var scopes = [...]Scope{User, Service, Admin}

// String returns the scope's name in the claim.
func (s Scope) String() string {
	switch s {
	case User:
		return "user"
	case Service:
		return "service"
	case Admin:
		return "admin"
	default:
		return "scope " + strconv.Itoa(int(s))
	}
}

// ParseScope returns the scope of that name, or ErrInvalid.
func ParseScope(name string) (Scope, error) {
	for _, s := range scopes {
		if s.String() == name {
			return s, nil
		}
	}
	return 0, likes.Errorf(likes.ErrInvalid, "scope %.40q is unknown, want user, service or admin", name)
}
