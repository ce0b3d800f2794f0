package abuse

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/outside"
)

// scorerAt is a scorer's configuration; the timeout is long enough for a slow
// machine.
func scorerAt(url string) Scorer {
	return Scorer{Endpoint: outside.Endpoint{URL: url, Timeout: 5 * time.Second, MaxInFlight: 8}}
}

// serve runs a scorer and returns its URL.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func decide(decision string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"decision":"`+decision+`","score":0.3}`)
	}
}

func TestTheScorerIsAskedAndDecides(t *testing.T) {
	var got []string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.URL.Path+" "+r.Header.Get("Content-Type")+" "+r.Header.Get("Authorization")+" "+string(body))
		if strings.Contains(string(body), `"user_id":"2"`) {
			decide("refuse")(w, r)
			return
		}
		decide("allow")(w, r)
	})
	s := scorerAt(url + "/score")
	token := file(t, "first\n")
	s.TokenFile = token
	g, seen := guard(t, Config{Scorer: s, Refresh: time.Millisecond})
	a := like(9007199254740993, 5, "192.0.2.1")
	a.Device, _ = ParseDevice("phone")
	require.NoError(t, g.Check(t.Context(), a, nil))
	a = like(2, 6, "")
	a.Edge.Counter = likes.Saves
	require.ErrorIs(t, g.Check(t.Context(), a, nil), ErrRefused)
	require.Equal(t, []string{
		`POST /score application/json Bearer first {"user_id":"9007199254740993","item_id":"5","item_type":"post","ip":"192.0.2.1","device":"` + hashOf("phone") + `","action":"like"}`,
		`POST /score application/json Bearer first {"user_id":"2","item_id":"6","item_type":"post","ip":"","device":"","action":"save"}`,
	}, got)
	require.Equal(t, map[string]int{"allow": 1, "refuse": 1}, seen.scored)
	require.Equal(t, map[string]int{"scorer": 1}, seen.refused)

	replace(t, token, "second")
	within(t, func() bool {
		require.NoError(t, g.Check(t.Context(), like(1, 1, ""), nil))
		return strings.Contains(got[len(got)-1], "Bearer second")
	}, "the token is not read again")
	seen.see(func(s *told) { require.Positive(t, s.ok, "nobody is told of readings") })
	require.NotContains(t, seen.logged(), "second")
}

func hashOf(name string) string {
	d, _ := ParseDevice(name)
	return d.String()
}

func TestTheScorerIsAskedOnlyAboutWhatNothingElseRefuses(t *testing.T) {
	var asked atomic.Int64
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		decide("refuse")(w, r)
	})
	g, _ := guard(t, Config{Scorer: scorerAt(url), List: file(t, "user 9 deny"), Velocity: Velocity{Item: perMinute(1)}, Batch: true})
	require.ErrorIs(t, g.Check(t.Context(), like(9, 1, ""), nil), ErrRefused)
	require.Zero(t, asked.Load())
	for range 5 { // what the scorer refuses does not use up the item's limit
		require.ErrorIs(t, g.Check(t.Context(), like(1, 1, ""), nil), ErrRefused)
	}
	require.EqualValues(t, 5, asked.Load())
	require.NoError(t, g.CheckBatch(t.Context(), []Attempt{like(2, 1, "")}, nil)[0])
	require.Equal(t, "item", usedUp(g.Check(t.Context(), like(1, 1, ""), nil)))
	require.EqualValues(t, 5, asked.Load(), "batches do not ask, and neither does what a limit refuses")
}

// What a broken scorer may answer: it is as good as none.
func TestABrokenScorerIsAnError(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"500":         func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"no decision": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) },
		"a number":    func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"decision":1}`) },
		"unknown":     decide("deny"),
		"Refuse":      decide("Refuse"),
		"long": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"decision":"allow","x":"`+strings.Repeat("x", maxDecision)+`"}`)
		},
	} {
		url := serve(t, h)
		for _, closed := range []bool{false, true} {
			s := scorerAt(url + "/")
			s.FailClosed = closed
			g, seen := guard(t, Config{Scorer: s})
			err := g.Check(t.Context(), like(1, 1, ""), nil)
			require.Equal(t, map[string]int{"error": 1}, seen.scored, name)
			if !closed {
				require.NoError(t, err, name)
				continue
			}
			require.ErrorIs(t, err, likes.ErrUnavailable, name)
			require.Equal(t, map[string]int{"scorer_error": 1}, seen.refused, name)
		}
	}
}

func TestAScorerThatFailsIsLeftAlone(t *testing.T) {
	g, seen := guard(t, Config{Scorer: scorerAt(serve(t, decide("maybe")))})
	for range tripAfter + 5 {
		require.NoError(t, g.Check(t.Context(), like(1, 1, ""), nil))
	}
	require.Equal(t, map[string]int{"error": tripAfter, "open": 5}, seen.scored)
	require.Equal(t, 1, strings.Count(seen.logged(), "service=scorer"))
	require.Contains(t, seen.logged(), "fail_closed=false")
}

func TestWhoIsGoneSaysNothingAboutTheScorer(t *testing.T) {
	g, seen := guard(t, Config{Scorer: scorerAt(serve(t, decide("allow")))})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, g.Check(gone, like(1, 1, ""), nil), likes.ErrUnavailable, "a like passed that was not decided about")
	require.Empty(t, seen.scored)
}

func TestHowAQuestionEnds(t *testing.T) {
	for want, err := range map[string]error{
		"busy":  fmt.Errorf("x: %w", outside.ErrBusy),
		"open":  outside.ErrOpen,
		"error": context.DeadlineExceeded,
	} {
		require.Equal(t, want, resultOf(false, err))
	}
	require.Equal(t, "allow", resultOf(true, nil))
	require.Equal(t, "refuse", resultOf(false, nil))
}

func TestABadScorerIsRefused(t *testing.T) {
	bad := scorerAt("http://a.example/")
	_, err := Open(t.Context(), Config{Scorer: bad, Refresh: time.Second, Log: slog.New(slog.DiscardHandler)})
	require.ErrorIs(t, err, likes.ErrInvalid)
	require.ErrorContains(t, err, "scorer: url: want https")
	good := scorerAt("http://localhost/")
	good.TokenFile = file(t, "token")
	_, err = Open(t.Context(), Config{Scorer: good, List: file(t, "rubbish"), SlowFactor: 2, Refresh: time.Second, Log: slog.New(slog.DiscardHandler)})
	require.ErrorContains(t, err, "line 1") // and the token is followed no more, says goleak
}
