package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/auth"
	"likectl/pkg/client"
	"likectl/pkg/likes"
)

var errOut = errors.New("out of tokens")

// broken are answers that are not likectl's. The request has arrived in all of
// them, so a write is uncertain.
func broken(t *testing.T) map[string]http.HandlerFunc {
	html := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<html>a gateway speaks</html>")
		}
	}
	text := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
	}
	stranger := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a redirect was followed, with %q", r.Header.Get("Authorization"))
	}))
	t.Cleanup(stranger.Close)
	return map[string]http.HandlerFunc{
		"closed before an answer": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"closed within the answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"status":"liked","count":1`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
		"closed within a header": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Le")
				_ = conn.Close()
			}
		},
		"500 in HTML":       html(500),
		"502 in HTML":       html(502),
		"404 in HTML":       html(404),
		"200 in HTML":       html(200),
		"204":               html(204),
		"an empty object":   text(`{}`),
		"an unknown status": text(`{"status":"loved","count":1}`),
		"huge": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"status":"liked","count":1,"more":"`)
			for range 5 << 10 {
				if _, err := io.WriteString(w, strings.Repeat("x", 1<<10)); err != nil {
					return
				}
			}
			_, _ = io.WriteString(w, `"}`)
		},
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, stranger.URL+r.URL.Path, http.StatusTemporaryRedirect)
		},
		"a problem that is not likectl's": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(503)
			_, _ = io.WriteString(w, `{"type":"about:blank","error":"unavailable"}`)
		},
		"a defect of likectl": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(500)
			_, _ = io.WriteString(w, `{"type":"urn:likectl:error:internal","error":"internal"}`)
		},
		"a later likectl's fault": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(503)
			_, _ = io.WriteString(w, `{"type":"urn:likectl:error:new","error":"new"}`)
		},
	}
}

func TestBrokenAnswersAreUncertainToWritesAndNoAnswerToReads(t *testing.T) {
	for name, fault := range broken(t) {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			c, ctx := f.open(), t.Context()
			require.NoError(t, one(t, c, like(2, post(1))).Err)
			f.answer(fault)
			uncertain := func(r likes.Result) {
				t.Helper()
				require.ErrorIs(t, r.Err, likes.ErrUncertain)
				require.NotErrorIs(t, r.Err, likes.ErrUnavailable)
				require.Equal(t, likes.Result{Err: r.Err}, r, "if Err is set nothing else is")
			}
			uncertain(one(t, c, like(3, post(1))))
			uncertain(one(t, c, unlike(3, post(1))))
			uncertain(one(t, c, view(post(1))))
			for _, r := range c.Apply(ctx, []likes.Mutation{like(3, post(1)), like(4, post(1))}) {
				uncertain(r)
			}
			unavailable := func(err error) {
				t.Helper()
				require.ErrorIs(t, err, likes.ErrUnavailable, "never 0 and never no")
				require.NotErrorIs(t, err, likes.ErrUncertain)
			}
			unavailable(c.Counts(ctx, likes.Likes, []likes.Item{post(1)}, nil)[0].Err)
			unavailable(c.Has(ctx, likes.Likes, 2, []likes.Item{post(1)}, nil)[0].Err)
			_, _, err := c.Likers(ctx, likes.Likes, post(1), "", 10)
			unavailable(err)
			_, _, err = c.LikedBy(ctx, likes.Likes, 2, "", 10)
			unavailable(err)
		})
	}
}

// A write whose time is over while it is under way is uncertain, by the
// context's deadline and by the client's own.
func TestSlowAnswers(t *testing.T) {
	f := newFixture(t)
	release := make(chan struct{})
	f.answer(func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	const patience = 30 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := f.open().Apply(ctx, []likes.Mutation{like(1, post(1))})[0].Err
	require.ErrorIs(t, err, likes.ErrUncertain)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	err = one(t, f.open(func(cfg *client.Config) { cfg.Timeout = patience }), like(1, post(1))).Err
	require.ErrorIs(t, err, likes.ErrUncertain)
	require.Len(t, f.asked(), 2, "nothing is sent twice")

	// Behind the only connection: this one is never sent.
	c := f.open(func(cfg *client.Config) { cfg.MaxConns = 1 })
	first, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.Apply(first, []likes.Mutation{like(1, post(1))})[0].Err }()
	require.Eventually(t, func() bool { return len(f.asked()) == 1 }, 10*time.Second, time.Millisecond)
	waiting, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err = c.Apply(waiting, []likes.Mutation{like(2, post(1))})[0].Err
	require.ErrorIs(t, err, likes.ErrUnavailable)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	stop()
	err = <-done
	require.ErrorIs(t, err, likes.ErrUncertain)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, f.asked())
}

// What was never sent has not been applied, and says so.
func TestUnsentIsUnavailable(t *testing.T) {
	f := newFixture(t)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	err := f.open().Apply(over, []likes.Mutation{like(1, post(1))})[0].Err
	require.ErrorIs(t, err, likes.ErrUnavailable)
	require.ErrorIs(t, err, context.Canceled)

	none := func(context.Context) (string, error) { return "", errOut }
	err = one(t, f.open(func(cfg *client.Config) { cfg.Token = none }), like(1, post(1))).Err
	require.ErrorIs(t, err, likes.ErrUnavailable)
	require.ErrorIs(t, err, errOut)
	err = one(t, f.open(func(cfg *client.Config) { cfg.Token = client.Static("a\r\nX-Evil: 1") }), like(1, post(1))).Err
	require.ErrorIs(t, err, likes.ErrInvalid)
	require.NotContains(t, err.Error(), "Evil", "tokens are not for logs")
	require.Empty(t, f.asked())

	c := f.open()
	f.server.Close()
	c.Close() // an old connection may seem to live, and then it is not known what it carried
	require.ErrorIs(t, one(t, c, like(1, post(1))).Err, likes.ErrUnavailable)
	_, err = client.Open(t.Context(), client.Default(f.server.URL, nil))
	require.ErrorIs(t, err, likes.ErrUnavailable)
}

// deaf is a RoundTripper that says nothing of what it does.
type deaf struct{ calls int }

func (d *deaf) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/openapi.json" {
		return http.DefaultTransport.RoundTrip(r)
	}
	d.calls++
	return nil, io.ErrUnexpectedEOF
}

func TestATransportThatSaysNothingMayHaveSentIt(t *testing.T) {
	f := newFixture(t)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	d := &deaf{}
	c := f.open(func(cfg *client.Config) { cfg.HTTP = &http.Client{Transport: d} })
	require.ErrorIs(t, one(t, c, like(1, post(1))).Err, likes.ErrUncertain)
	require.Equal(t, 1, d.calls)
}

// A server that takes connections and drops them may have read what was sent.
func TestDroppedConnections(t *testing.T) {
	f := newFixture(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-stopped })
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if ctx.Value(dropped{}) != nil {
			addr = l.Addr().String()
		}
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
	c := f.open(func(cfg *client.Config) {
		cfg.HTTP = &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	})
	r := c.Apply(context.WithValue(t.Context(), dropped{}, true), []likes.Mutation{like(1, post(1))})[0]
	require.ErrorIs(t, r.Err, likes.ErrUncertain)
}

type dropped struct{}

func TestTLS(t *testing.T) {
	f := newFixture(t)
	server := httptest.NewUnstartedServer(f.server.Config.Handler)
	server.Config.ErrorLog = f.server.Config.ErrorLog
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	c := f.open(func(cfg *client.Config) { cfg.URL, cfg.HTTP = server.URL, server.Client() })
	require.Equal(t, int64(1), one(t, c, like(1, post(1))).Count.N)
	c.Close()

	// Of a server that nobody vouches for, nothing is asked.
	_, err := client.Open(t.Context(), client.Default(server.URL, nil))
	require.ErrorIs(t, err, likes.ErrUnavailable)
	require.ErrorContains(t, err, "certificate")
}

func TestLimitsOfOthersAreOverload(t *testing.T) {
	f := newFixture(t)
	for header, want := range map[string]time.Duration{"7": 7 * time.Second, "": 0, "-1": 0, "99999999999999": 24 * time.Hour, "Wed, 21 Oct 2026 07:28:00 GMT": 0} {
		f.answer(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", header)
			w.WriteHeader(http.StatusTooManyRequests)
		})
		err := one(t, f.open(), like(1, post(1))).Err
		require.ErrorIs(t, err, likes.ErrOverloaded)
		e, ok := errors.AsType[*client.Error](err)
		require.True(t, ok)
		require.Equal(t, want, e.RetryAfter, "%q", header)
		require.Equal(t, 429, e.Status)
		require.Empty(t, e.Code)
	}
}

// Once an operation is uncertain, what stands behind it is not sent: it could
// overtake it.
func TestNothingOvertakesAnUncertainOperation(t *testing.T) {
	f := newFixture(t)
	f.answer(func(_ http.ResponseWriter, r *http.Request) {
		panic(http.ErrAbortHandler)
	})
	c := f.as(5)
	rs := c.Apply(t.Context(), []likes.Mutation{like(5, post(1)), unlike(5, post(1)), like(5, post(2)), like(5, post(1))})
	for i, kind := range []error{likes.ErrUncertain, likes.ErrUnavailable, likes.ErrUncertain, likes.ErrUnavailable} {
		require.ErrorIs(t, rs[i].Err, kind, "%d", i)
	}
	require.NotErrorIs(t, rs[1].Err, likes.ErrUncertain)
	require.Len(t, f.asked(), 2)
}

func TestConnectionsAreReused(t *testing.T) {
	f := newFixture(t)
	c := f.as(3)
	ports := map[string]bool{}
	f.answer(func(w http.ResponseWriter, r *http.Request) {
		ports[r.RemoteAddr] = true
		w.WriteHeader(503)
		_, _ = io.WriteString(w, `{"type":"urn:likectl:error:unavailable","error":"unavailable"}`)
	})
	for i := range 20 {
		require.ErrorIs(t, one(t, c, like(3, post(likes.ItemID(i+1)))).Err, likes.ErrUnavailable)
	}
	require.Len(t, ports, 1)
}

func TestWrongConfigurationsAreRefused(t *testing.T) {
	f := newFixture(t)
	for name, change := range map[string]func(*client.Config){
		"no URL":        func(c *client.Config) { c.URL = "" },
		"no scheme":     func(c *client.Config) { c.URL = "127.0.0.1:8080" },
		"other scheme":  func(c *client.Config) { c.URL = "ftp://127.0.0.1" },
		"query":         func(c *client.Config) { c.URL += "/?a=1" },
		"password":      func(c *client.Config) { c.URL = "http://a:b@127.0.0.1" },
		"user":          func(c *client.Config) { c.User = -1 },
		"0 connections": func(c *client.Config) { c.MaxConns = 0 },
		"0 s":           func(c *client.Config) { c.Timeout = 0 },
	} {
		cfg := client.Default(f.server.URL, f.token(1, auth.Service))
		change(&cfg)
		_, err := client.Open(t.Context(), cfg)
		require.ErrorIs(t, err, likes.ErrInvalid, name)
	}
	for _, body := range []string{
		"", "<html>", "{}", `{"x-likectl-contract":{"ack":"logged"}}`, `{"x-likectl-contract":{"ack":"maybe"},"x-likectl-item-types":{"post":1}}`,
		`{"x-likectl-item-types":{"post":1}}`, `{"x-likectl-contract":{},"x-likectl-item-types":{"post":1}}`,
		`{"x-likectl-contract":{"ack":"logged"},"x-likectl-item-types":{"post":0}}`,
	} {
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, body) }))
		_, err := client.Open(t.Context(), client.Default(other.URL, nil))
		require.ErrorIs(t, err, likes.ErrUnavailable, body)
		other.Close()
	}
}
