package visibility

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/sony/gobreaker/v2"

	"likectl/pkg/likes"
)

// AuthorizerConfig says where an outside authorizer is. All but TokenFile is needed.
type AuthorizerConfig struct {
	// URL is https, or http on this machine.
	URL string
	// Timeout is the time for one call, with the wait for a free place.
	Timeout time.Duration
	// MaxConcurrent is the number of calls in flight at once.
	MaxConcurrent int
	// TokenFile holds a bearer token that goes with every call; empty: none.
	TokenFile string
	// Types are the names of item types.
	Types likes.ItemTypes
}

// Check returns ErrInvalid that names the field out of range. It does no IO.
func (c *AuthorizerConfig) Check() error {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "" || u.Fragment != "" || u.User != nil:
		return likes.Errorf(likes.ErrInvalid, "url: want https://HOST/PATH, without a password")
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		return likes.Errorf(likes.ErrInvalid, "url: want https, except on this machine")
	case c.Timeout <= 0:
		return likes.Errorf(likes.ErrInvalid, "timeout: %v, want more than 0", c.Timeout)
	case c.MaxConcurrent < 1:
		return likes.Errorf(likes.ErrInvalid, "max_concurrent: %d, want at least 1", c.MaxConcurrent)
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// maxAnswer is the largest answer that is read: [likes.MaxRead] decisions of about
// 40 bytes, three times over.
const maxAnswer = 64 << 10

// An authorizer that failed so often in a row is left alone for so long: calls
// fail at once instead of each waiting for its timeout.
const (
	tripAfter = 5
	tripFor   = time.Second
)

// Authorizer asks another service, by one POST for up to [likes.MaxRead] items:
//
//	{"viewer":"9","items":[{"item_id":"1","item_type":"post"}]}
//
// where viewer is null without a token, and for a backend that names no user. The
// answer is 200 and by position:
//
//	{"decisions":[{"visible":true,"counts":"shown"}]}
//
// counts is shown or hidden, and not needed of what is not visible. Whatever else
// comes back is a fault.
type Authorizer struct {
	cfg     AuthorizerConfig
	token   string
	client  *http.Client
	places  chan struct{}
	breaker *gobreaker.CircuitBreaker[[]Decision]
}

// OpenAuthorizer reads the token and returns an authorizer. It makes no call: one
// that is away is an error of the calls that need it.
func OpenAuthorizer(cfg AuthorizerConfig) (*Authorizer, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	a := &Authorizer{cfg: cfg, places: make(chan struct{}, cfg.MaxConcurrent)}
	if cfg.TokenFile != "" {
		token, err := os.ReadFile(cfg.TokenFile)
		if err != nil {
			return nil, likes.Errorf(likes.ErrInvalid, "token_file: %w", err)
		}
		if a.token = strings.TrimSpace(string(token)); a.token == "" || strings.ContainsAny(a.token, " \t\r\n") {
			return nil, likes.Errorf(likes.ErrInvalid, "token_file: %s: want one token and nothing else", cfg.TokenFile)
		}
	}
	a.client = &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, MaxConnsPerHost: cfg.MaxConcurrent, MaxIdleConnsPerHost: cfg.MaxConcurrent,
			IdleConnTimeout: time.Minute, TLSHandshakeTimeout: cfg.Timeout, MaxResponseHeaderBytes: maxAnswer, ForceAttemptHTTP2: true,
		},
		// Followed, a redirect could lead anywhere, with the token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	a.breaker = gobreaker.NewCircuitBreaker[[]Decision](gobreaker.Settings{
		Timeout:     tripFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= tripAfter },
		// A caller who gave up says nothing about the authorizer.
		IsExcluded: func(err error) bool { return errors.Is(err, context.Canceled) },
	})
	return a, nil
}

// Close drops the connections that are not in use.
func (a *Authorizer) Close(context.Context) error {
	a.client.CloseIdleConnections()
	return nil
}

// Decide asks about 1 to [likes.MaxRead] items, by position.
func (a *Authorizer) Decide(ctx context.Context, viewer likes.UserID, items []likes.Item, out []Decision) error {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Timeout)
	defer cancel()
	select {
	case a.places <- struct{}{}:
		defer func() { <-a.places }()
	case <-ctx.Done():
		return fmt.Errorf("authorizer: all %d calls at once are in use: %w", a.cfg.MaxConcurrent, ctx.Err())
	}
	found, err := a.breaker.Execute(func() ([]Decision, error) { return a.call(ctx, viewer, items) })
	if err != nil {
		return fmt.Errorf("authorizer: %w", err)
	}
	copy(out, found)
	return nil
}

// The two bodies.
type (
	question struct {
		Viewer *string `json:"viewer"`
		Items  []named `json:"items"`
	}
	named struct {
		ItemID   string `json:"item_id"`
		ItemType string `json:"item_type"`
	}
	verdict struct {
		Visible *bool  `json:"visible"`
		Counts  string `json:"counts"`
	}
)

func (a *Authorizer) call(ctx context.Context, viewer likes.UserID, items []likes.Item) ([]Decision, error) {
	q := question{Items: make([]named, len(items))}
	if viewer > 0 {
		id := strconv.FormatInt(int64(viewer), 10)
		q.Viewer = &id
	}
	for i, item := range items {
		q.Items[i] = named{strconv.FormatInt(int64(item.ID), 10), a.cfg.Types.Name(item.Type)}
	}
	body, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.cfg.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("it answers %s, want 200", resp.Status)
	case len(answer) > maxAnswer:
		return nil, fmt.Errorf("its answer has more than %d bytes", maxAnswer)
	}
	return parseVerdicts(answer, len(items))
}

// parseVerdicts reads an answer about n items.
func parseVerdicts(answer []byte, n int) ([]Decision, error) {
	var in struct {
		Decisions []verdict `json:"decisions"`
	}
	if err := json.Unmarshal(answer, &in); err != nil {
		return nil, fmt.Errorf("its answer is malformed: %w", err)
	}
	if len(in.Decisions) != n {
		return nil, fmt.Errorf("its answer has %d decisions for %d items", len(in.Decisions), n)
	}
	out := make([]Decision, n)
	for i, v := range in.Decisions {
		switch {
		case v.Visible == nil:
			return nil, fmt.Errorf("decisions[%d] does not say visible", i)
		case v.Counts != "shown" && v.Counts != "hidden" && (*v.Visible || v.Counts != ""):
			return nil, fmt.Errorf("decisions[%d]: counts %.20q, want shown or hidden", i, v.Counts)
		}
		out[i] = Decision{Visible: *v.Visible, CountsShown: *v.Visible && v.Counts == "shown"}
	}
	return out, nil
}
