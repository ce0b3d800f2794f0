package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"likectl/pkg/likes"
)

// ErrHidden is the error of a count or a list of likers that is for the item's
// owner alone.
var ErrHidden = errors.New("hidden")

// Error is what the API answered instead of a result. It wraps one of the kinds of
// pkg/likes, which says what it means for the data.
type Error struct {
	// Status of HTTP; 0 for an entry of a batch.
	Status int
	// Code is the answer's stable name of the error, such as rate_limited; empty
	// where something else than likectl answered.
	Code string
	// Detail says what happened, for people.
	Detail string
	// RequestID names the request in the server's log; empty for an entry.
	RequestID string
	// RetryAfter is how long to wait before another try; 0: unknown, or a try as
	// it is will not help.
	RetryAfter time.Duration

	kind  error
	where string
}

// Error returns what was asked, what was answered and what it means.
func (e *Error) Error() string {
	b := e.where + ": "
	if e.Status != 0 {
		b += strconv.Itoa(e.Status) + " "
	}
	if e.Code != "" {
		b += e.Code + ": "
	}
	b += e.Detail
	if e.RequestID != "" {
		b += " (request " + e.RequestID + ")"
	}
	return b
}

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.kind }

// problem is an error on the wire: of a whole answer (RFC 9457), or of an entry,
// which has fewer members.
type problem struct {
	Type       string `json:"type"`
	Detail     string `json:"detail"`
	Code       string `json:"error"`
	RetryAfter int64  `json:"retry_after"`
	RequestID  string `json:"request_id"`
}

// ours begins the type of every problem that likectl answers.
const ours = "urn:likectl:error:"

// refused makes an error of an answer that is not a success. What likectl itself
// did not say proves nothing about a write: a gateway's 502 may come after the
// request has passed, and so may its 404. The exception is 429, by which HTTP
// means that the request was not let in (RFC 6585).
func refused(q *request, r *http.Response, body []byte) error {
	var p problem
	if err := json.Unmarshal(body, &p); err == nil && strings.HasPrefix(p.Type, ours) {
		return p.err(q, r.StatusCode)
	}
	e := &Error{Status: r.StatusCode, kind: likes.ErrUnavailable, where: q.String(), RetryAfter: seconds(headerSeconds(r.Header))}
	e.Detail = fmt.Sprintf("something that is not likectl answered: %.100q", body)
	if to := r.Header.Get("Location"); to != "" {
		e.Detail = fmt.Sprintf("something that is not likectl answered: go to %.100q", to)
	}
	switch {
	case r.StatusCode == http.StatusTooManyRequests:
		e.kind = likes.ErrOverloaded
	case q.write:
		e.kind = likes.ErrUncertain
		e.Detail += "; it may have been applied, repeating it is safe"
	}
	return e
}

// err returns the error that a problem of likectl's stands for; status 0: that of
// an entry.
func (p *problem) err(q *request, status int) error {
	return &Error{
		Status: status, Code: p.Code, Detail: p.Detail, RequestID: p.RequestID, RetryAfter: seconds(p.RetryAfter),
		kind: kindOf(p.Code, status, q.write), where: q.String(),
	}
}

// kindOf returns the kind of an error by its code. A code of a later version is
// judged by its status: 4xx is the caller's, and likectl applies nothing then.
func kindOf(code string, status int, write bool) error {
	switch code {
	case "invalid", "refused": // the latter of a batch's entry too, which has no status
		return likes.ErrInvalid
	case "not_found":
		return likes.ErrNotFound
	case "erased":
		return likes.ErrErased
	case "overloaded", "rate_limited":
		return likes.ErrOverloaded
	case "fenced":
		return likes.ErrFenced
	case "version_not_reached":
		return likes.ErrNotYet
	case "unavailable", "body_timeout":
		return likes.ErrUnavailable
	}
	switch {
	case status >= 400 && status < 500:
		return likes.ErrInvalid
	case write:
		return likes.ErrUncertain
	default:
		return likes.ErrUnavailable
	}
}

// headerSeconds returns Retry-After where it is a number. The other form, a date,
// is of a clock that may not be this one.
func headerSeconds(h http.Header) int64 {
	n, err := strconv.ParseInt(h.Get("Retry-After"), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// seconds returns a number of seconds within 0 and a day: whoever is told to wait
// for longer may as well ask again.
func seconds(n int64) time.Duration {
	const day = 24 * 60 * 60
	return time.Duration(min(max(n, 0), day)) * time.Second
}
