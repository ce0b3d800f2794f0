// Package outside asks services that are not ours: whoever runs them decides what
// they answer, and when.
//
// A question is one HTTP POST of JSON with a bound on everything: its time, the
// number at once, the size of the answer. A service that fails again and again is
// left alone for a while, so that a question costs no timeout while it is away,
// and it is not flooded while it comes back. Redirects are not followed: one could
// lead anywhere, with the token and what is asked.
package outside

import (
	"errors"
	"net"
	"net/url"
	"strings"
	"time"

	"likectl/pkg/likes"
)

// Endpoint is where a service is and how much it is waited for: what operators
// configure. All but TokenFile is needed.
type Endpoint struct {
	// URL is https, or http on this machine.
	URL string
	// TokenFile holds a bearer token that goes with every question; empty: none.
	TokenFile string
	// Timeout is the time for an answer, waiting for a turn included.
	Timeout time.Duration
	// MaxInFlight is how many questions are asked at once.
	MaxInFlight int
}

// Check returns ErrInvalid that names the field out of range. It does no IO.
func (e Endpoint) Check() error {
	switch err := CheckURL(e.URL); {
	case err != nil:
		return likes.Errorf(likes.ErrInvalid, "url: %w", err)
	case e.Timeout <= 0:
		return likes.Errorf(likes.ErrInvalid, "timeout: %v, want more than 0", e.Timeout)
	case e.MaxInFlight < 1:
		return likes.Errorf(likes.ErrInvalid, "max_in_flight: %d, want at least 1", e.MaxInFlight)
	}
	return nil
}

// CheckURL says what keeps a URL from being asked: anything but https could be
// read and changed on the way, except on this machine.
func CheckURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return err
	case u.Host == "" || u.Opaque != "" || u.Fragment != "" || u.User != nil:
		return errors.New("want https://HOST/PATH without a password")
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		return errors.New("want https, except on this machine")
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// maxToken bounds a file with a token, in bytes.
const maxToken = 8 << 10

// parseToken reads what follows "Bearer ": one word.
func parseToken(doc []byte) (string, error) {
	text := strings.TrimSpace(string(doc))
	if text == "" {
		return "", errors.New("it holds no token")
	}
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return "", errors.New("want one token of visible ASCII characters")
		}
	}
	return text, nil
}
