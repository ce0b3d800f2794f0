package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"

	"likectl/pkg/likes"
)

// maxAnswer bounds what is read of an answer, in bytes. The largest there is, a
// batch of likes.MaxApply entries that all failed, is a tenth of it.
const maxAnswer = 4 << 20

// request is one request to the API.
type request struct {
	method, path string
	// body becomes JSON; nil: none.
	body any
	// header names the header that the tokens go into.
	header string
	tokens []string
	// write: if it arrives, something may be applied.
	write bool
	// public: no token is sent.
	public bool
}

func (q *request) String() string {
	path, _, _ := strings.Cut(q.path, "?")
	return q.method + " " + path
}

// unsent returns the error of a request that never left.
func (q *request) unsent(err error) error {
	return likes.Errorf(likes.ErrUnavailable, "%v: not sent, nothing was applied: %w", q, err)
}

// unclear returns the error of a request that left and had no answer of likectl's.
func (q *request) unclear(format string, args ...any) error {
	if !q.write {
		return likes.Errorf(likes.ErrUnavailable, "%v: %w", q, fmt.Errorf(format, args...))
	}
	return likes.Errorf(likes.ErrUncertain, "%v: it may have been applied, repeating it is safe: %w", q, fmt.Errorf(format, args...))
}

// attempt watches whether a request can have left. Before a connection was there
// it cannot. Whoever never says anything, such as a RoundTripper of a user's own,
// may have sent it.
type attempt struct{ asked, got atomic.Bool }

func (a *attempt) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) { a.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { a.got.Store(true) },
	}
}

func (a *attempt) left() bool { return a.got.Load() || !a.asked.Load() }

// call sends a request once and decodes the answer, if it is a success. The header
// is the answer's.
func (c *Client) call(ctx context.Context, q request, into any) (http.Header, error) {
	if err := ctx.Err(); err != nil {
		return nil, q.unsent(err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	var a attempt
	r, err := c.newRequest(httptrace.WithClientTrace(ctx, a.trace()), &q)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(r)
	switch {
	case err != nil && a.left():
		return nil, q.unclear("no answer: %w", err)
	case err != nil:
		return nil, q.unsent(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, q.unclear("the answer broke off after %d bytes: %w", len(body), err)
	case len(body) > maxAnswer:
		return nil, q.unclear("the answer has more than %d bytes", maxAnswer)
	case response.StatusCode != http.StatusOK && response.StatusCode != http.StatusAccepted:
		return nil, refused(&q, response, body)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return nil, q.unclear("the answer is not likectl's: %w", err)
	}
	return response.Header, nil
}

func (c *Client) newRequest(ctx context.Context, q *request) (*http.Request, error) {
	var in io.Reader
	if q.body != nil {
		text, err := json.Marshal(q.body)
		if err != nil {
			return nil, q.unsent(err)
		}
		in = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, q.method, c.base+q.path, in)
	if err != nil {
		return nil, q.unsent(err)
	}
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if len(q.tokens) > 0 {
		r.Header.Set(q.header, strings.Join(q.tokens, ", "))
	}
	if q.public || c.cfg.Token == nil {
		return r, nil
	}
	token, err := c.cfg.Token(ctx)
	if err != nil {
		return nil, q.unsent(fmt.Errorf("get a token: %w", err))
	}
	for _, b := range []byte(token) {
		if b <= ' ' || b > '~' {
			return nil, likes.Errorf(likes.ErrInvalid, "%v: not sent: the token has the byte %#x, which no token has", q, b)
		}
	}
	r.Header.Set("Authorization", "Bearer "+token)
	return r, nil
}

// fanOut is how many requests of one call are on their way at once.
const fanOut = 8

// each calls do for 0 to n-1, fanOut of them at once, and returns when all are
// done.
func each(n int, do func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(n, fanOut) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	all.Wait()
}
