package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// ask calls a path of the health checks.
func ask(tb testing.TB, h http.Handler, path string) (int, string) {
	tb.Helper()
	rec, req := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
	h.ServeHTTP(rec, req)
	conforms(tb, req, rec)
	require.True(tb, json.Valid(rec.Body.Bytes()))
	require.Equal(tb, "no-store", rec.Header().Get("Cache-Control"))
	return rec.Code, rec.Body.String()
}

func TestReadyz_NamesWhoDoesNotAnswerAndRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		log := &lockedBuffer{}
		h := NewHealth(slog.New(slog.NewTextHandler(log, nil)),
			Probe{"postgres", func(context.Context) error {
				if down.Load() {
					return errors.New("dial 10.0.0.7: password=hunter2")
				}
				return nil
			}},
			Probe{"redis", func(context.Context) error { return nil }})
		mux := NewAdmin(h)

		code, body := ask(t, mux, "/readyz")
		require.Equal(t, 200, code)
		require.JSONEq(t, `{"status":"ready","dependencies":{"postgres":{"ok":true},"redis":{"ok":true}}}`, body)

		down.Store(true)
		code, _ = ask(t, mux, "/readyz")
		require.Equal(t, 200, code, "the round is reused within a second")
		time.Sleep(probeFor)
		code, body = ask(t, mux, "/readyz")
		require.Equal(t, 503, code)
		require.JSONEq(t, `{"status":"not_ready","dependencies":{"postgres":{"ok":false},"redis":{"ok":true}}}`, body)
		require.Contains(t, log.String(), "hunter2")
		code, _ = ask(t, mux, "/healthz")
		require.Equal(t, 200, code, "the process lives all the same")

		down.Store(false)
		time.Sleep(probeFor)
		code, _ = ask(t, mux, "/readyz")
		require.Equal(t, 200, code)
	})
}

func TestReadyz_ManyCallersShareARound(t *testing.T) {
	var rounds atomic.Int64
	began, release := make(chan struct{}, 100), make(chan struct{})
	mux := NewAdmin(NewHealth(slog.New(slog.DiscardHandler), Probe{"db", func(context.Context) error {
		rounds.Add(1)
		began <- struct{}{}
		<-release
		return nil
	}}))
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() { ask(t, mux, "/readyz") })
	}
	<-began
	close(release)
	wg.Wait()
	require.EqualValues(t, 1, rounds.Load())
}

func TestReadyz_AHangingProbeCostsOneGoroutineAndOneSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var started atomic.Int64
		mux := NewAdmin(NewHealth(slog.New(slog.DiscardHandler),
			Probe{"deaf", func(context.Context) error {
				started.Add(1)
				<-release
				return nil
			}},
			Probe{"broken", func(context.Context) error { panic("nil map") }}))
		for range 3 {
			began := time.Now()
			code, body := ask(t, mux, "/readyz")
			require.Equal(t, 503, code)
			require.JSONEq(t, `{"status":"not_ready","dependencies":{"deaf":{"ok":false},"broken":{"ok":false}}}`, body)
			require.LessOrEqual(t, time.Since(began), probeTimeout)
			time.Sleep(probeFor)
		}
		require.EqualValues(t, 1, started.Load())
		close(release)
		synctest.Wait()
		_, body := ask(t, mux, "/readyz")
		require.Contains(t, body, `"deaf":{"ok":true}`)
		require.EqualValues(t, 2, started.Load(), "the old answer is not taken for a new one")
	})
}

func TestReadyz_WhatIsExcludedDoesNotCount(t *testing.T) {
	mux := NewAdmin(NewHealth(slog.New(slog.DiscardHandler),
		Probe{"postgres", func(context.Context) error { return nil }},
		Probe{"writes", func(context.Context) error { return errors.New("read-only") }},
		Probe{"redis", func(context.Context) error { return errors.New("away") }}))
	for path, want := range map[string]int{
		"/readyz":                                503,
		"/readyz?exclude=writes":                 503,
		"/readyz?exclude=writes&exclude=redis":   200,
		"/readyz?exclude=redis&exclude=writes&x": 200,
		"/readyz?exclude=writes,redis":           503,
		"/readyz?exclude=kafka":                  503,
		"/readyz?exclude=":                       503,
	} {
		code, body := ask(t, mux, path)
		require.Equal(t, want, code, path)
		require.Contains(t, body, `"dependencies":{"postgres":{"ok":true},"writes":{"ok":false},"redis":{"ok":false}}}`)
	}
}
