package client_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"likectl/pkg/auth"
	"likectl/pkg/client"
	"likectl/pkg/httpapi"
	"likectl/pkg/likes"
	"likectl/pkg/memory"
	"likectl/pkg/version"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is the API over a service on a loopback port, with a gateway before it
// that lets everything through unless a test puts something in its way.
type fixture struct {
	t       *testing.T
	auth    *auth.Authority
	service *watched
	server  *httptest.Server

	mu       sync.Mutex
	instead  http.HandlerFunc // of the API, for all but /openapi.json
	requests []string         // methods and paths, but /openapi.json
}

// watched passes calls on and remembers what versions came with them; err answers
// instead where it has something to say.
type watched struct {
	likes.Service
	mu    sync.Mutex
	seen  []likes.Version
	after likes.Clock
	err   func(likes.Item) error
}

func (s *watched) fault(item likes.Item) error {
	if s.err == nil {
		return nil
	}
	return s.err(item)
}

func (s *watched) Apply(ctx context.Context, ms []likes.Mutation) []likes.Result {
	s.mu.Lock()
	s.after = ms[0].After
	s.mu.Unlock()
	out := s.Service.Apply(ctx, ms)
	for i, m := range ms {
		if err := s.fault(m.Edge.Item); err != nil {
			out[i] = likes.Result{Err: err}
		}
	}
	return out
}

func (s *watched) Counts(ctx context.Context, c likes.Counter, items []likes.Item, seen []likes.Version) []likes.Count {
	s.mu.Lock()
	s.seen = append(s.seen, seen...)
	s.mu.Unlock()
	out := s.Service.Counts(ctx, c, items, seen)
	for i, item := range items {
		if err := s.fault(item); err != nil {
			out[i] = likes.Count{Err: err}
		}
	}
	return out
}

func (s *watched) Has(ctx context.Context, c likes.Counter, u likes.UserID, items []likes.Item, seen []likes.Version) []likes.Membership {
	s.mu.Lock()
	s.seen = append(s.seen, seen...)
	s.mu.Unlock()
	out := s.Service.Has(ctx, c, u, items, seen)
	for i, item := range items {
		if err := s.fault(item); err != nil {
			out[i] = likes.Membership{Err: err}
		}
	}
	return out
}

func (s *watched) Likers(ctx context.Context, c likes.Counter, item likes.Item, cur likes.Cursor, n int) ([]likes.Member, likes.Cursor, error) {
	if err := s.fault(item); err != nil {
		return nil, "", err
	}
	return s.Service.Likers(ctx, c, item, cur, n)
}

func newFixture(t *testing.T, change ...func(*httpapi.Config)) *fixture {
	t.Helper()
	f := &fixture{t: t, service: &watched{Service: memory.New()}}
	secret := bytes.Repeat([]byte{3}, auth.SecretSize)
	var err error
	f.auth, err = auth.New(auth.Default(secret))
	require.NoError(t, err)
	versions, err := version.New(secret)
	require.NoError(t, err)
	log := slog.New(slog.DiscardHandler)
	cfg := httpapi.Config{
		Service: f.service, Auth: f.auth, Versions: versions, Types: likes.DefaultItemTypes(),
		Health: httpapi.NewHealth(log), Limits: httpapi.DefaultLimits(), Logger: log,
	}
	for _, c := range change {
		c(&cfg)
	}
	api, err := httpapi.New(cfg)
	require.NoError(t, err)
	f.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		handler := f.instead
		if r.URL.Path != "/openapi.json" {
			f.requests = append(f.requests, r.Method+" "+r.URL.Path)
		}
		f.mu.Unlock()
		if handler == nil || r.URL.Path == "/openapi.json" {
			handler = api.ServeHTTP
		}
		handler(w, r)
	}))
	f.server.Config.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	f.server.Start()
	t.Cleanup(f.server.Close)
	return f
}

// answer puts something in the way of the API; nil takes it away.
func (f *fixture) answer(h http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.instead = h
}

// asked returns what requests came since it was last asked.
func (f *fixture) asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.requests
	f.requests = nil
	return all
}

func (f *fixture) token(u likes.UserID, scope auth.Scope) func(context.Context) (string, error) {
	token, err := f.auth.Mint(u, scope, time.Hour)
	require.NoError(f.t, err)
	return client.Static(token)
}

// open returns a client with a service's token.
func (f *fixture) open(change ...func(*client.Config)) *client.Client {
	f.t.Helper()
	cfg := client.Default(f.server.URL, f.token(1, auth.Service))
	for _, c := range change {
		c(&cfg)
	}
	c, err := client.Open(f.t.Context(), cfg)
	require.NoError(f.t, err)
	f.t.Cleanup(c.Close)
	return c
}

// as returns a client with a user's token.
func (f *fixture) as(u likes.UserID) *client.Client {
	f.t.Helper()
	return f.open(func(cfg *client.Config) { cfg.User, cfg.Token = u, f.token(u, auth.User) })
}

func post(id likes.ItemID) likes.Item { return likes.Item{Type: 1, ID: id} }

func like(u likes.UserID, item likes.Item) likes.Mutation {
	return likes.Mutation{Op: likes.Set, Edge: likes.Edge{Counter: likes.Likes, Item: item, User: u}}
}

func unlike(u likes.UserID, item likes.Item) likes.Mutation {
	m := like(u, item)
	m.Op = likes.Clear
	return m
}

func view(item likes.Item) likes.Mutation {
	return likes.Mutation{Op: likes.Add, Edge: likes.Edge{Counter: likes.Views, Item: item}, Event: likes.NewEventID(time.Now())}
}

func one(t *testing.T, c *client.Client, m likes.Mutation) likes.Result {
	t.Helper()
	rs := c.Apply(t.Context(), []likes.Mutation{m})
	require.Len(t, rs, 1)
	return rs[0]
}
