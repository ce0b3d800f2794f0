package auth

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNoToken says that the request carries no bearer token.
var ErrNoToken = errors.New("no bearer token: send the header Authorization: Bearer TOKEN")

// Bearer returns the token of a request's Authorization headers (RFC 6750, 2.1).
// The scheme is matched in any case (RFC 9110, 11.1). Two headers are refused:
// a proxy and this server could each believe another one.
func Bearer(headers []string) (string, error) {
	switch {
	case len(headers) == 0:
		return "", ErrNoToken
	case len(headers) > 1:
		return "", fmt.Errorf("%w: there are %d Authorization headers", ErrToken, len(headers))
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", ErrNoToken
	}
	token = strings.TrimLeft(token, " ")
	if token == "" {
		return "", ErrNoToken
	}
	if strings.ContainsAny(token, " ,\t") {
		return "", fmt.Errorf("%w: it must be one token without blanks", ErrToken)
	}
	return token, nil
}
