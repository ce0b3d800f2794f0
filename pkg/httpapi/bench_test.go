package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/abuse"
	"likectl/pkg/auth"
	"likectl/pkg/likes"
	"likectl/pkg/limit"
)

// still answers without doing anything, so that only the API is measured.
type still struct {
	likes.Service
	result []likes.Result
	counts []likes.Count
}

func (s *still) Apply(context.Context, []likes.Mutation) []likes.Result { return s.result }

func (s *still) Counts(context.Context, likes.Counter, []likes.Item, []likes.Version) []likes.Count {
	return s.counts
}

// sink is a ResponseWriter that is used again and again.
type sink struct {
	h      http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.h }
func (s *sink) Write(b []byte) (int, error) { return len(b), nil }
func (s *sink) WriteHeader(status int)      { s.status = status }

// replay is a request body that is read again and again.
type replay struct {
	*strings.Reader
	text string
}

func (r *replay) Close() error { return nil }

func quiet(tb testing.TB) *fixture {
	f := newFixture(tb, func(c *Config) {
		n := likes.Count{N: 1524, AsOf: time.Now(), Source: likes.FromStore}
		v := likes.Version{Edge: likes.Edge{Counter: likes.Likes, Item: likes.Item{Type: 1, ID: 1}, User: 1}, Clock: 1 << 50}
		c.Service = &still{Service: c.Service, counts: []likes.Count{n}, result: []likes.Result{{Outcome: likes.Changed, Version: v, Count: n}}}
		c.Logger = slog.New(slog.DiscardHandler)
	})
	return f
}

// repeated returns a function that sends the request once more.
func repeated(tb testing.TB, f *fixture, req *http.Request, body string) func() {
	r := &replay{Reader: strings.NewReader(body), text: body}
	req.Body = r
	w := &sink{h: http.Header{}}
	return func() {
		r.Reset(r.text)
		clear(w.h)
		f.api.ServeHTTP(w, req)
		if w.status != 200 {
			tb.Fatalf("status %d", w.status)
		}
	}
}

var _ io.ReadCloser = (*replay)(nil)

func BenchmarkAPI(b *testing.B) {
	f := quiet(b)
	like := repeated(b, f, f.request("POST", "/v1/like", goodLike, f.token(1, auth.User)), goodLike)
	count := repeated(b, f, f.request("GET", "/v1/count?item_id=123456789&item_type=post", "", ""), "")
	for name, send := range map[string]func(){"like": like, "count": count} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				send()
			}
		})
	}
}

// velocityOnly is a guard with a limit of items and one of addresses, both so high
// that nothing is refused.
func velocityOnly(tb testing.TB) *abuse.Guard {
	tb.Helper()
	high := perMinute(limit.MaxCalls)
	g, err := abuse.Open(tb.Context(), abuse.Config{
		Velocity: abuse.Velocity{Item: high, IP: high, MaxKeys: 1000}, Refresh: time.Hour,
	})
	require.NoError(tb, err)
	return g
}

// BenchmarkAbuse is a like without a guard, and with one that has two limits.
func BenchmarkAbuse(b *testing.B) {
	f := quiet(b)
	like := repeated(b, f, f.request("POST", "/v1/like", goodLike, f.token(1, auth.User)), goodLike)
	for _, c := range []struct {
		name  string
		guard *abuse.Guard
	}{{"off", nil}, {"on", velocityOnly(b)}} {
		f.api.cfg.Abuse = c.guard
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				like()
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	body := []byte(`{"ops":[` + strings.Repeat(`{"user_id":"123456789","item_id":"123456789","item_type":"post","action":"like"},`, 999) +
		`{"user_id":"123456789","item_id":"123456789","item_type":"post","action":"like"}]}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		d := decoder{b: body, types: &types}
		if _, err := d.batch(0); err != nil {
			b.Fatal(err)
		}
	}
}
