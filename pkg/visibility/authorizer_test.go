package visibility_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/outside"
	"likectl/pkg/visibility"
)

// authorizer returns one in front of a handler, closed when the test ends.
func authorizer(t *testing.T, h http.HandlerFunc, change ...func(*visibility.AuthorizerConfig)) *visibility.Authorizer {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	cfg := visibility.AuthorizerConfig{
		Endpoint: outside.Endpoint{URL: server.URL + "/decide", Timeout: 5 * time.Second, MaxInFlight: 2},
		Types:    likes.DefaultItemTypes(), Log: slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&cfg)
	}
	a, err := visibility.OpenAuthorizer(t.Context(), cfg)
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

func TestAuthorizer_ConfigurationsThatAreRefused(t *testing.T) {
	for want, e := range map[string]outside.Endpoint{
		"url: want https": {URL: "http://authz.example/", Timeout: time.Second, MaxInFlight: 1},
		"token_file":      {URL: "https://authz.example/", Timeout: time.Second, MaxInFlight: 1, TokenFile: filepath.Join(t.TempDir(), "none")},
	} {
		_, err := visibility.OpenAuthorizer(t.Context(), visibility.AuthorizerConfig{Endpoint: e, Log: slog.New(slog.DiscardHandler)})
		require.ErrorIs(t, err, likes.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
}
