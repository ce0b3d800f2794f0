package httpapi

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rs/cors"

	"likectl/pkg/likes"
)

// CORS says which web pages of other origins may call the API from a browser
// (https://fetch.spec.whatwg.org/#http-cors-protocol). The zero value allows none
// and adds no header. Cookies and other credentials of the browser are never asked
// for: a page sends its token itself.
type CORS struct {
	// Origins are exact origins, such as https://app.example.com, or "*" alone
	// for every page.
	Origins []string
	// MaxAge is how long a browser may remember a preflight's answer, in whole
	// seconds; browsers cap it (Chromium at 2 hours).
	MaxAge time.Duration
}

// Check returns ErrInvalid that says which origin no browser would send, or that
// the age is out of range.
func (c CORS) Check() error {
	for i, o := range c.Origins {
		switch {
		case o == "*" && len(c.Origins) > 1:
			return likes.Errorf(likes.ErrInvalid, `origins[%d]: "*" allows every origin and stands alone`, i)
		case o != "*" && !isOrigin(o):
			return likes.Errorf(likes.ErrInvalid, "origins[%d]: %q: want an origin as browsers send it, such as https://app.example.com, or \"*\" alone", i, o)
		}
	}
	if len(c.Origins) > 0 && (c.MaxAge < time.Second || c.MaxAge > maxPreflight) {
		return likes.Errorf(likes.ErrInvalid, "max age %v, want %v to %v", c.MaxAge, time.Second, maxPreflight)
	}
	return nil
}

// maxPreflight is the longest that any browser remembers a preflight (Firefox).
const maxPreflight = 24 * time.Hour

// isOrigin says whether a browser can send the text as Origin: scheme and host in
// lower case, no default port, nothing else. "null" is what any sandboxed page
// sends, so it is none.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" || text != u.Scheme+"://"+u.Host {
		return false
	}
	port := u.Port()
	return text == strings.ToLower(text) && !strings.ContainsAny(text, "*, ") && !strings.HasSuffix(u.Host, ":") &&
		(u.Scheme != "https" || port != "443") && (u.Scheme != "http" || port != "80")
}

// corsHandler puts CORS in front of a handler. A preflight is answered here: it
// carries no token, takes from no limit and reaches no service. The methods are
// those of the routes; the headers are what the API reads, with those that its
// configuration names, or what an answer carries.
func corsHandler(c CORS, methods []string, next http.Handler, configured ...string) http.Handler {
	if len(c.Origins) == 0 {
		return next
	}
	return cors.New(cors.Options{
		AllowedOrigins: c.Origins,
		AllowedMethods: methods,
		AllowedHeaders: append([]string{
			"Authorization", "Content-Type", "If-None-Match", "Like-Min-Version", "Like-Version", "Traceparent", "Tracestate", "X-Request-Id",
		}, configured...),
		ExposedHeaders: []string{
			"ETag", "Like-Version", "RateLimit", "RateLimit-Policy", "Retry-After", "X-Request-Id", "X-Stale-Data",
		},
		MaxAge: int(c.MaxAge / time.Second),
	}).Handler(next)
}
