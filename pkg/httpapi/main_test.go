package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"likectl/pkg/auth"
	"likectl/pkg/likes"
	"likectl/pkg/memory"
	"likectl/pkg/version"
	"likectl/pkg/visibility"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is the API over a service, with tokens and a log to look at.
type fixture struct {
	tb       testing.TB
	api      *API
	auth     *auth.Authority
	versions *version.Codec
	service  *asked
	catalog  *memory.Service
	log      *lockedBuffer
	// undocumented is set where a service answers what none would there.
	undocumented bool
}

// asked passes calls on and counts them; fault answers instead where it is set.
type asked struct {
	likes.Service
	mu    sync.Mutex
	calls int
	fault func(entry int) error
	after []likes.Clock
	seen  [][]likes.Version
}

func (s *asked) count() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
}

func (s *asked) Apply(ctx context.Context, ms []likes.Mutation) []likes.Result {
	s.count()
	for _, m := range ms {
		s.after = append(s.after, m.After)
	}
	rs := s.Service.Apply(ctx, ms)
	for i := range rs {
		if s.fault == nil {
			break
		}
		if err := s.fault(i); err != nil {
			rs[i] = likes.Result{Err: err}
		}
	}
	return rs
}

func (s *asked) Counts(ctx context.Context, c likes.Counter, items []likes.Item, seen []likes.Version) []likes.Count {
	s.count()
	s.seen = append(s.seen, seen)
	rs := s.Service.Counts(ctx, c, items, seen)
	for i := range rs {
		if s.fault == nil {
			break
		}
		if err := s.fault(i); err != nil {
			rs[i] = likes.Count{Err: err}
		}
	}
	return rs
}

func (s *asked) Has(ctx context.Context, c likes.Counter, u likes.UserID, items []likes.Item, seen []likes.Version) []likes.Membership {
	s.count()
	s.seen = append(s.seen, seen)
	rs := s.Service.Has(ctx, c, u, items, seen)
	for i := range rs {
		if s.fault == nil {
			break
		}
		if err := s.fault(i); err != nil {
			rs[i] = likes.Membership{Err: err}
		}
	}
	return rs
}

func (s *asked) Likers(ctx context.Context, c likes.Counter, i likes.Item, cur likes.Cursor, n int) ([]likes.Member, likes.Cursor, error) {
	s.count()
	if s.fault != nil {
		if err := s.fault(0); err != nil {
			return nil, "", err
		}
	}
	return s.Service.Likers(ctx, c, i, cur, n)
}

// lockedBuffer is a log that handlers write and tests read.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var secret = bytes.Repeat([]byte{9}, auth.SecretSize)

func newFixture(tb testing.TB, change ...func(*Config)) *fixture {
	tb.Helper()
	oracle := memory.New()
	f := &fixture{tb: tb, service: &asked{Service: oracle}, catalog: oracle, log: &lockedBuffer{}}
	logger := slog.New(slog.NewTextHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	f.auth, err = auth.New(auth.Default(secret))
	require.NoError(tb, err)
	f.versions, err = version.New(secret)
	require.NoError(tb, err)
	guard, err := visibility.New(visibility.Config{Source: f.catalog, Cache: time.Second, MaxEntries: 10_000})
	require.NoError(tb, err)
	cfg := Config{
		Service: f.service, Guard: guard, Catalog: f.catalog, Auth: f.auth, Versions: f.versions, Types: likes.DefaultItemTypes(),
		Health: NewHealth(logger), Limits: DefaultLimits(), Logger: logger,
	}
	for _, c := range change {
		c(&cfg)
	}
	f.api, err = New(cfg)
	require.NoError(tb, err)
	return f
}

func (f *fixture) token(user likes.UserID, scope auth.Scope) string {
	t, err := f.auth.Mint(user, scope, time.Hour)
	require.NoError(f.tb, err)
	return t
}

// request is a request with what most tests want; header holds name, value, ….
func (f *fixture) request(method, target, body, token string, header ...string) *http.Request {
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req := httptest.NewRequest(method, target, r)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	return req
}

// answer is a response that has been read and found well-formed.
type answer struct {
	status int
	header http.Header
	body   map[string]any
	raw    string
}

// do sends a request and checks what holds for every answer.
func (f *fixture) do(req *http.Request) answer {
	f.tb.Helper()
	rec := httptest.NewRecorder()
	f.api.ServeHTTP(rec, req)
	if !f.undocumented {
		conforms(f.tb, req, rec)
	}
	a := answer{status: rec.Code, header: rec.Header(), raw: rec.Body.String()}
	require.True(f.tb, json.Valid(rec.Body.Bytes()), "%q", a.raw)
	d := json.NewDecoder(rec.Body)
	d.UseNumber()
	require.NoError(f.tb, d.Decode(&a.body))
	require.Equal(f.tb, "nosniff", a.header.Get("X-Content-Type-Options"))
	require.NotEmpty(f.tb, a.header.Get("X-Request-Id"))
	require.NotEmpty(f.tb, a.header.Get("Cache-Control"))
	want := "application/json"
	if a.status >= 400 {
		want = "application/problem+json"
		require.EqualValues(f.tb, a.status, number(f.tb, a.body["status"]))
		for _, member := range []string{"type", "title", "detail", "error"} {
			require.NotEmpty(f.tb, a.body[member], "%s of %s", member, a.raw)
		}
		require.Equal(f.tb, a.header.Get("X-Request-Id"), a.body["request_id"])
		require.Equal(f.tb, "no-store", a.header.Get("Cache-Control"))
	}
	require.Equal(f.tb, want, a.header.Get("Content-Type"))
	return a
}

// as returns v as a T, which it must be.
func as[T any](tb testing.TB, v any) T {
	tb.Helper()
	want, ok := v.(T)
	require.True(tb, ok, "%v is a %T and no %T", v, v, want)
	return want
}

func number(tb testing.TB, v any) int64 {
	tb.Helper()
	i, err := as[json.Number](tb, v).Int64()
	require.NoError(tb, err)
	return i
}

// like sends a like or unlike of a user and expects a 2xx.
func (f *fixture) like(method string, user likes.UserID, item string) answer {
	f.tb.Helper()
	a := f.do(f.request(method, "/v1/like", `{"item_id":"`+item+`","item_type":"post"}`, f.token(user, auth.User)))
	require.Equal(f.tb, 200, a.status, a.raw)
	return a
}

// counted returns how many like the item of goodLike.
func (f *fixture) counted() int64 {
	f.tb.Helper()
	a := f.do(f.request("GET", "/v1/count?item_id=1&item_type=post", "", ""))
	require.Equal(f.tb, 200, a.status, a.raw)
	return number(f.tb, as[map[string]any](f.tb, a.body["counts"])["likes"])
}
