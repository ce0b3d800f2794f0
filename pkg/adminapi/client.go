package adminapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"likectl/pkg/likes"
	"likectl/pkg/reconcile"
)

// Client calls a server's admin listener. It is safe for concurrent use.
type Client struct {
	base  string
	token func() (string, error)
	http  *http.Client
}

// NewClient returns a client of the listener at a URL such as
// http://127.0.0.1:9090, or ErrInvalid. token is asked for a token before each
// call, so that a long command does not outlive its own.
func NewClient(base string, token func() (string, error)) (*Client, error) {
	base, err := BaseURL(base)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{Proxy: nil, MaxIdleConnsPerHost: 64}
	return &Client{base: base, token: token, http: &http.Client{Transport: transport}}, nil
}

// BaseURL returns the URL of an admin listener without a slash at its end, or
// ErrInvalid.
func BaseURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return "", likes.Errorf(likes.ErrInvalid, "%q is not the address of an admin listener: want http://127.0.0.1:9090", text)
	}
	return u.Scheme + "://" + u.Host, nil
}

// Close closes the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// firstAnswer is how long a server may take for an answer that costs it nothing:
// one that was stopped or hangs must not hang its operator too.
const firstAnswer = 10 * time.Second

// ItemTypes returns the server's item types.
func (c *Client) ItemTypes(ctx context.Context) (likes.ItemTypes, error) {
	ctx, cancel := context.WithTimeout(ctx, firstAnswer)
	defer cancel()
	var answer typesAnswer
	if err := c.call(ctx, http.MethodGet, pathTypes, nil, &answer); err != nil {
		return likes.ItemTypes{}, err
	}
	types := make(map[string]likes.ItemType, len(answer.Types))
	for name, n := range answer.Types {
		types[name] = likes.ItemType(n)
	}
	return likes.NewItemTypes(types)
}

// Apply applies replays, as [likes.Service] does.
func (c *Client) Apply(ctx context.Context, ms []likes.Mutation) []likes.Result {
	out := make([]likes.Result, len(ms))
	request := replayRequest{Replays: make([]replay, len(ms))}
	for i, m := range ms {
		request.Replays[i] = newReplay(m)
	}
	var answer replayAnswer
	err := c.call(ctx, http.MethodPost, pathReplay, request, &answer)
	if err == nil && len(answer.Results) != len(ms) {
		err = likes.Errorf(likes.ErrUncertain, "%s: %d answers to %d replays", c.base, len(answer.Results), len(ms))
	}
	for i, m := range ms {
		switch {
		case err != nil:
			out[i].Err = err
		case answer.Results[i].Error != nil:
			out[i].Err = answer.Results[i].Error.err()
		default:
			out[i].Outcome = outcome(answer.Results[i].Outcome)
			out[i].Version = likes.Version{Edge: m.Edge, Clock: m.Fixed}
		}
	}
	return out
}

// Reconcile runs a walk in the server; see [reconcile.New] and [reconcile.Walk].
// at is told where the walk is, about once a second.
func (c *Client) Reconcile(ctx context.Context, config reconcile.Config, at func(checked, estimate int64), found func(reconcile.Found) error) (reconcile.Summary, error) {
	request := reconcileRequest{All: len(config.Keys) == 0, DryRun: config.DryRun, PerSecond: config.PerSecond}
	for _, k := range config.Keys {
		request.Keys = append(request.Keys, newKey(k))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	response, err := c.send(ctx, http.MethodPost, pathReconcile, request)
	if err != nil {
		return reconcile.Summary{}, err
	}
	defer func() { _ = response.Body.Close() }()
	var sum reconcile.Summary
	events := json.NewDecoder(bufio.NewReader(response.Body))
	for {
		var e event
		if err := events.Decode(&e); err != nil {
			return sum, fmt.Errorf("%s: the walk's end was not reported; repairs made so far stay made: %w", c.base, ended(ctx, err))
		}
		switch {
		case e.Summary != nil:
			return *e.Summary, e.Error.err()
		case e.Found != nil:
			sum.Drifted++
			if e.Found.Repaired {
				sum.Repaired++
			}
			if err := found(e.Found.found()); err != nil {
				return sum, err
			}
		case e.Progress != nil:
			sum.Checked = e.Progress.Checked
			at(e.Progress.Checked, e.Progress.Estimate)
		}
	}
}

// ended prefers the context's error to what it made of the connection.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// call sends a request and reads its whole answer.
func (c *Client) call(ctx context.Context, method, path string, request, answer any) error {
	response, err := c.send(ctx, method, path, request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return likes.Errorf(likes.ErrUncertain, "%s%s: read the answer: %w", c.base, path, err)
	}
	// The connection is used again only if the body was read to its end.
	_, _ = io.Copy(io.Discard, response.Body)
	return nil
}

// send returns the response if its status is 200. Its body is the caller's.
func (c *Client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	token, err := c.token()
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(r)
	if err != nil {
		return nil, transport(err)
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }()
	return nil, c.refused(path, response)
}

// transport tells a server that was never reached from one that may have acted.
func transport(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return likes.Errorf(likes.ErrUnavailable, "no server answers, nothing was applied: %w; --admin wants the address that the server prints as admin", err)
	}
	return likes.Errorf(likes.ErrUncertain, "the connection to the admin listener broke, repeating is safe: %w", err)
}

// refused makes an error of an answer that is not 200.
func (c *Client) refused(path string, response *http.Response) error {
	var p problem
	if err := json.NewDecoder(io.LimitReader(response.Body, maxBody)).Decode(&p); err != nil || p.Detail == "" {
		p.Detail = "no likectl admin listener answers there"
	}
	text := fmt.Sprintf("%s%s: %s: %s", c.base, path, response.Status, p.Detail)
	switch status := response.StatusCode; {
	case status == http.StatusUnauthorized:
		return fmt.Errorf("%s; tokens are made from the secret in the data folder: name the server's with --data", text)
	case status == http.StatusBadRequest:
		return likes.Errorf(likes.ErrInvalid, "%s", text)
	case status == http.StatusTooManyRequests:
		return likes.Errorf(likes.ErrOverloaded, "%s", text)
	case status == http.StatusServiceUnavailable:
		return likes.Errorf(likes.ErrUnavailable, "%s", text)
	case status >= http.StatusInternalServerError:
		return likes.Errorf(likes.ErrUncertain, "%s", text)
	default:
		return errors.New(text)
	}
}
