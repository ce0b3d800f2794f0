package visibility_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/visibility"
)

// authorizer returns one in front of a handler, closed when the test ends.
func authorizer(t *testing.T, h http.HandlerFunc, change ...func(*visibility.AuthorizerConfig)) *visibility.Authorizer {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	cfg := visibility.AuthorizerConfig{URL: server.URL + "/decide", Timeout: 5 * time.Second, MaxConcurrent: 2, Types: likes.DefaultItemTypes()}
	for _, c := range change {
		c(&cfg)
	}
	a, err := visibility.OpenAuthorizer(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close(context.Background())) })
	return a
}

func guardOf(t *testing.T, a *visibility.Authorizer) *visibility.Guard {
	t.Helper()
	g, err := visibility.New(visibility.Config{Authorizer: a, Cache: time.Hour, MaxEntries: 100})
	require.NoError(t, err)
	return g
}

func answers(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

func TestAuthorizer_AsksOnceForAViewerAndItsItems(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("s3cret\n"), 0o600))
	var asked []string
	a := authorizer(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		asked = append(asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("Content-Type")+" "+r.Header.Get("Authorization")+" "+string(body))
		_, _ = io.WriteString(w, `{"decisions":[{"visible":true,"counts":"hidden"},{"visible":false},{"visible":true,"counts":"shown","because":"x"}]}`)
	}, func(c *visibility.AuthorizerConfig) { c.TokenFile = file })
	g := guardOf(t, a)
	items := []likes.Item{secretItem, {Type: 2, ID: 9007199254740993}, noItem}
	want := visibility.Decisions{{Visible: true}, {}, {Visible: true, CountsShown: true}}
	const head, tail = `POST /decide application/json Bearer s3cret {"viewer":`,
		`,"items":[{"item_id":"1","item_type":"post"},{"item_id":"9007199254740993","item_type":"reel"},{"item_id":"3","item_type":"post"}]}`
	for i, viewer := range []likes.UserID{9, visibility.Anonymous, visibility.Backend} {
		for range 2 { // the second time from memory
			ds, err := g.Look(t.Context(), viewer, items)
			require.NoError(t, err)
			require.Equal(t, want, ds)
		}
		require.Len(t, asked, i+1)
		require.Equal(t, head+map[bool]string{true: `"9"`, false: "null"}[viewer == 9]+tail, asked[i])
	}
}

// Whatever is not exactly an answer is a fault: 503, not "visible", not 404.
func TestAuthorizer_AFaultIsNeverADecision(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"500":          func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"404":          http.NotFound,
		"204":          func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) },
		"not JSON":     answers(`<html>`),
		"cut":          answers(`{"decisions":[{"visible":true,"counts":"shown"}`),
		"trailing":     answers(`{"decisions":[{"visible":true,"counts":"shown"}]} x`),
		"none":         answers(`{}`),
		"too few":      answers(`{"decisions":[]}`),
		"too many":     answers(`{"decisions":[{"visible":true,"counts":"shown"},{"visible":true,"counts":"shown"}]}`),
		"null":         answers(`{"decisions":[null]}`),
		"unsaid":       answers(`{"decisions":[{"counts":"shown"}]}`),
		"no counts":    answers(`{"decisions":[{"visible":true}]}`),
		"wrong counts": answers(`{"decisions":[{"visible":true,"counts":"some"}]}`),
		"wrong type":   answers(`{"decisions":[{"visible":"yes","counts":"shown"}]}`),
		"too large":    answers(`{"decisions":[{"visible":true,"counts":"shown"}]` + strings.Repeat(" ", 64<<10) + `}`),
		"connection":   func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
		"half answered": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "100") },
	} {
		var calls atomic.Int64
		g := guardOf(t, authorizer(t, func(w http.ResponseWriter, r *http.Request) {
			calls.Add(1)
			h(w, r)
		}))
		d, err := g.One(t.Context(), 9, openItem)
		require.ErrorIs(t, err, likes.ErrUnavailable, name)
		require.NotErrorIs(t, err, likes.ErrNotFound, name)
		require.Equal(t, visibility.Decision{}, d, name)
		require.EqualValues(t, 1, calls.Load(), "%s: followed or repeated", name)
	}
}

func TestAuthorizer_OneThatFailsIsLeftAloneAndTriedAgain(t *testing.T) {
	var calls, broken atomic.Int64
	broken.Store(1)
	a := authorizer(t, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		if broken.Load() == 1 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = io.WriteString(w, `{"decisions":[{"visible":true,"counts":"shown"}]}`)
	})
	ask := func() error {
		return a.Decide(t.Context(), 9, []likes.Item{openItem}, make([]visibility.Decision, 1))
	}
	for range 50 {
		require.Error(t, ask())
	}
	require.Less(t, calls.Load(), int64(10), "an authorizer that is away is called all the same")
	broken.Store(0)
	require.Eventually(t, func() bool { return ask() == nil }, 10*time.Second, 10*time.Millisecond)
}

func TestAuthorizer_IsWaitedForNoLongerThanItsTimeout(t *testing.T) {
	hang := make(chan struct{})
	a := authorizer(t, func(http.ResponseWriter, *http.Request) { <-hang },
		func(c *visibility.AuthorizerConfig) { c.Timeout = 20 * time.Millisecond })
	t.Cleanup(func() { close(hang) }) // before the server closes
	began := time.Now()
	err := a.Decide(t.Context(), 9, []likes.Item{openItem}, make([]visibility.Decision, 1))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(began), 5*time.Second)
}

func TestAuthorizer_NoMoreCallsAtOnceThanAllowed(t *testing.T) {
	var calls atomic.Int64
	entered, hang := make(chan struct{}), make(chan struct{})
	a := authorizer(t, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		entered <- struct{}{}
		<-hang
		_, _ = io.WriteString(w, `{"decisions":[{"visible":true,"counts":"shown"}]}`)
	}, func(c *visibility.AuthorizerConfig) { c.MaxConcurrent, c.Timeout = 1, time.Minute })
	first := make(chan error, 1)
	go func() { first <- a.Decide(t.Context(), 9, []likes.Item{openItem}, make([]visibility.Decision, 1)) }()
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := a.Decide(ctx, 9, []likes.Item{openItem}, make([]visibility.Decision, 1))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "all 1 calls")
	require.EqualValues(t, 1, calls.Load())
	close(hang)
	require.NoError(t, <-first)
}

// Callers who give up say nothing about the authorizer.
func TestAuthorizer_GivingUpIsNoFault(t *testing.T) {
	entered, hang := make(chan struct{}), make(chan struct{})
	a := authorizer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			entered <- struct{}{}
			<-hang
		}
		_, _ = io.WriteString(w, `{"decisions":[{"visible":true,"counts":"shown"}]}`)
	})
	goOn := sync.OnceFunc(func() { close(hang) })
	t.Cleanup(goOn) // before the server closes
	out := make([]visibility.Decision, 1)
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- a.Decide(ctx, 9, []likes.Item{openItem}, out) }()
		select {
		case <-entered:
		case err := <-done:
			require.NoError(t, err, "refused without a call")
		}
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	}
	goOn()
	go func() { <-entered }()
	require.NoError(t, a.Decide(t.Context(), 9, []likes.Item{openItem}, out))
}

func TestAuthorizer_ConfigurationsThatAreRefused(t *testing.T) {
	good := visibility.AuthorizerConfig{URL: "https://authz.example/decide", Timeout: time.Second, MaxConcurrent: 1, Types: likes.DefaultItemTypes()}
	require.NoError(t, good.Check())
	for _, url := range []string{"http://127.0.0.1:1/x", "http://[::1]/x", "http://localhost/x"} {
		c := good
		c.URL = url
		require.NoError(t, c.Check(), url)
	}
	for _, url := range []string{
		"", "authz", "http://authz.example/", "http://10.0.0.1/", "ftp://authz.example/", "https://u:p@authz.example/",
		"https:///x", "https://h/x#f", "http://localhost.example/", "://",
	} {
		c := good
		c.URL = url
		require.ErrorIs(t, c.Check(), likes.ErrInvalid, url)
		_, err := visibility.OpenAuthorizer(c)
		require.ErrorIs(t, err, likes.ErrInvalid, url)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, []byte(" \n"), 0o600))
	for _, change := range []func(*visibility.AuthorizerConfig){
		func(c *visibility.AuthorizerConfig) { c.Timeout = 0 },
		func(c *visibility.AuthorizerConfig) { c.MaxConcurrent = 0 },
		func(c *visibility.AuthorizerConfig) { c.TokenFile = empty },
		func(c *visibility.AuthorizerConfig) { c.TokenFile = empty + ".none" },
	} {
		c := good
		change(&c)
		_, err := visibility.OpenAuthorizer(c)
		require.ErrorIs(t, err, likes.ErrInvalid)
	}
}
