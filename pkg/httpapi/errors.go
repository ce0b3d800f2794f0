package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"likectl/pkg/abuse"
	"likectl/pkg/auth"
	"likectl/pkg/likes"
)

// The kinds of errors that only HTTP has.
var (
	errRoute    = errors.New("no such route")
	errMethod   = errors.New("method not allowed")
	errScope    = errors.New("scope of the token is too small")
	errSlow     = errors.New("body came too slowly")
	errTooLarge = errors.New("body is too large")
	errMedia    = errors.New("media type is not JSON")
	errRate     = errors.New("called too often")
	errPanic    = errors.New("handler panicked")
)

// problemError is one of these kinds with what only this request knows.
type problemError struct {
	kind   error
	detail string
	allow  string // the header Allow
	retry  int    // instead of the row's
}

func (e *problemError) Error() string { return e.kind.Error() }
func (e *problemError) Unwrap() error { return e.kind }

// row says how one kind of error looks to a client.
type row struct {
	kind   error
	status int
	// code is the stable name that programs test for.
	code  string
	title string
	// detail is safe for everybody. Where own is set, the error's own message
	// is shown instead: it speaks of the client's input only.
	detail string
	own    bool
	// retry is when to try again, in seconds; 0: not as it is.
	retry int
}

// table is the only place that maps kinds of errors to HTTP. The first row that
// matches counts: an error that may have been applied is uncertain, whatever
// else it wraps, since the client must not be told that nothing was.
var table = [...]row{
	{likes.ErrUncertain, 503, "uncertain", "The outcome is uncertain", "the operation may have been applied; repeating it is safe", false, 1},
	{likes.ErrInvalid, 400, "invalid", "The request is invalid", "", true, 0},
	{likes.ErrNotFound, 404, "not_found", "There is no such item", "there is no such item, or it is not for you to see", false, 0},
	{likes.ErrErased, 403, "erased", "The user has been erased", "this user has been erased; nothing was applied, now or later", false, 0},
	{likes.ErrOverloaded, 503, "overloaded", "The service is overloaded", "refused to protect what is in flight; nothing was applied", false, 1},
	{likes.ErrFenced, 503, "fenced", "This instance may not write now", "this instance has lost its lease; nothing was applied; another one or a later try can do it", false, 1},
	{likes.ErrNotYet, 503, "version_not_reached", "The version has not arrived here", "the state that the version token names is not readable here yet", false, 1},
	{likes.ErrUnavailable, 503, "unavailable", "A store is away", "a store does not answer; nothing was applied", false, 1},

	{auth.ErrNoToken, 401, "unauthorized", "A token is needed", "send the header Authorization: Bearer TOKEN", false, 0},
	{auth.ErrExpired, 401, "token_expired", "The token has expired", "get a new token", false, 0},
	{auth.ErrToken, 401, "token_invalid", "The token is not accepted", "", true, 0},
	{errScope, 403, "forbidden", "The token's scope is too small", "this route needs a token with the scope service", false, 0},
	{abuse.ErrRefused, 403, "refused", "The like is refused", "this is not accepted from this user, address or device; nothing was applied; a like can still be taken back", false, 0},
	{errRoute, 404, "no_such_route", "There is no such route", "there is nothing at this path; GET /openapi.json lists the routes", false, 0},
	{errMethod, 405, "method_not_allowed", "The method is not allowed here", "the header Allow names the methods of this path", false, 0},
	{errSlow, 408, "body_timeout", "The body came too slowly", "the body did not arrive in time; nothing was applied", false, 0},
	{errTooLarge, 413, "body_too_large", "The body is too large", "the body is too large", false, 0},
	{errMedia, 415, "unsupported_media_type", "The body is not JSON", "send Content-Type: application/json in UTF-8", false, 0},
	{errRate, 429, "rate_limited", "Too many calls", "a limit is used up; nothing was applied", false, 1},

	// Services answer the end of a context with a kind of their own; these two
	// are for one that does not.
	{context.DeadlineExceeded, 503, "timeout", "The time is over", "there was no answer in time; a write may have been applied; repeating it is safe", false, 1},
	{context.Canceled, 503, "timeout", "The request was cancelled", "the request was given up; a write may have been applied; repeating it is safe", false, 1},
}

// internal is the row of everything else: a defect of ours.
var internal = row{errPanic, 500, "internal", "Something is broken here", "this is a defect of the service; a write may have been applied; repeating it is safe", false, 0}

// find returns the row of an error.
func find(err error) *row {
	for i := range table {
		if errors.Is(err, table[i].kind) {
			return &table[i]
		}
	}
	return &internal
}

// index returns the row's place in the table, 0 for internal.
func (r *row) index() int {
	for i := range table {
		if r == &table[i] {
			return i
		}
	}
	return 0
}

// detailOf returns what the client is told about an error.
func (r *row) detailOf(err error) string {
	var p *problemError
	if errors.As(err, &p) && p.detail != "" {
		return p.detail
	}
	if r.own {
		return err.Error()
	}
	return r.detail
}

// problem makes the answer an RFC 9457 document and sets the headers that go
// with it.
func (c *call) problem(ctx context.Context, h http.Header, err error) {
	row := find(err)
	c.log(ctx, row, err)
	c.status, c.cache, c.vary, c.like, c.etag, c.stale = row.status, noStore, nil, "", "", false
	if row.status == http.StatusUnauthorized {
		challenge := `Bearer realm="likectl"`
		if row.code != "unauthorized" { // RFC 6750, 3.1: no code without a token
			challenge += `, error="invalid_token"`
		}
		h["Www-Authenticate"] = []string{challenge}
	}
	retry := row.retry
	if p, ok := errors.AsType[*problemError](err); ok {
		if p.allow != "" {
			h["Allow"] = []string{p.allow}
		}
		if p.retry > 0 {
			retry = p.retry
		}
	}
	b := c.out[:0]
	b = append(b, `{"type":"urn:likectl:error:`...)
	b = append(append(b, row.code...), `","title":`...)
	b = appendString(b, row.title)
	b = strconv.AppendInt(append(b, `,"status":`...), int64(row.status), 10)
	b = appendString(append(b, `,"detail":`...), row.detailOf(err))
	b = append(append(append(b, `,"error":"`...), row.code...), '"')
	if retry > 0 {
		b = strconv.AppendInt(append(b, `,"retry_after":`...), int64(retry), 10)
		h["Retry-After"] = []string{strconv.Itoa(retry)}
	}
	b = appendString(append(b, `,"request_id":`...), c.id)
	b = append(b, '}')
	c.out = b
}

// appendEntryError appends the error of one entry of a batch.
func appendEntryError(b []byte, err error) []byte {
	row := find(err)
	b = append(append(append(b, `{"error":"`...), row.code...), `","detail":`...)
	b = appendString(b, row.detailOf(err))
	retry := row.retry
	if p, ok := errors.AsType[*problemError](err); ok && p.retry > 0 {
		retry = p.retry
	}
	if retry > 0 {
		b = strconv.AppendInt(append(b, `,"retry_after":`...), int64(retry), 10)
	}
	return append(b, '}')
}

// failures gathers the errors of a batch's entries.
type failures struct {
	n     int
	fault bool  // all of them so far are the service's, not the client's
	first error // the one that speaks for all: the first uncertain one, else the first
	ours  error // the first one that is the service's fault; it is logged
}

func (f *failures) add(err error) {
	if err == nil {
		return
	}
	fault := find(err).status >= 500
	if f.n++; f.n == 1 {
		f.first, f.fault = err, true
	}
	f.fault = f.fault && fault
	if fault && f.ours == nil {
		f.ours = err
	}
	if errors.Is(err, likes.ErrUncertain) && !errors.Is(f.first, likes.ErrUncertain) {
		f.first = err
	}
}

// of returns the error of the whole batch if all of its n entries failed by the
// service's fault. Otherwise it logs that some did.
func (f *failures) of(ctx context.Context, c *call, n int) error {
	switch {
	case f.n == n && f.fault:
		return f.first
	case f.ours != nil:
		c.log(ctx, find(f.ours), f.ours)
	}
	return nil
}
