package abuse

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

// scorerAt is a scorer's configuration; the timeout is long enough for a slow
// machine.
func scorerAt(url string) Scorer {
	return Scorer{URL: url, Timeout: 5 * time.Second, MaxInFlight: 8}
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
	within(t, func() bool { return *g.scorer.token.Load() == "Bearer second" }, "the token is not read again")
	require.NoError(t, g.Check(t.Context(), like(1, 1, ""), nil))
	require.Contains(t, got[2], "Bearer second")
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
		"204":         func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) },
		"empty":       func(http.ResponseWriter, *http.Request) {},
		"no JSON":     func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "allow") },
		"two values":  func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"decision":"allow"}{}`) },
		"no decision": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) },
		"a number":    func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"decision":1}`) },
		"unknown":     decide("deny"),
		"Refuse":      decide("Refuse"),
		"long": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"decision":"allow","x":"`+strings.Repeat("x", maxDecision)+`"}`)
		},
		"huge": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"decision":"allow","x":"`)
			for _, err := io.WriteString(w, strings.Repeat("x", 1<<10)); err == nil; { // until it is cut off
				_, err = io.WriteString(w, strings.Repeat("x", 1<<10))
			}
		},
		"huge header": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 1<<20))
			decide("allow")(w, r)
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
				return
			}
			decide("allow")(w, r)
		},
		"hangs up": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
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

// stuck is a scorer that answers nobody until the test says so.
type stuck struct {
	url  string
	in   chan struct{} // one per question
	free chan struct{} // closed: answer
	now  atomic.Int64  // questions that have no answer yet
	most atomic.Int64  // that now has been
}

func newStuck(t *testing.T) *stuck {
	t.Helper()
	s := &stuck{in: make(chan struct{}, 1000), free: make(chan struct{})}
	s.url = serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the server notices when the asker is gone
		n := s.now.Add(1)
		for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); {
			most = s.most.Load()
		}
		s.in <- struct{}{}
		select {
		case <-s.free:
			s.now.Add(-1)
			decide("allow")(w, r)
		case <-r.Context().Done():
		}
	})
	return s
}

func TestASlowScorerCostsItsTimeoutAndThenNothing(t *testing.T) {
	s := newStuck(t)
	cfg := scorerAt(s.url)
	cfg.Timeout = 20 * time.Millisecond
	g, seen := guard(t, Config{Scorer: cfg})
	for range tripAfter {
		require.NoError(t, g.Check(t.Context(), like(1, 1, ""), nil))
	}
	for range 1000 { // the breaker is open
		require.NoError(t, g.Check(t.Context(), like(1, 1, ""), nil))
	}
	require.Equal(t, map[string]int{"error": tripAfter, "open": 1000}, seen.scored)
	require.LessOrEqual(t, len(s.in), tripAfter, "a scorer that does not answer is asked on and on")
	require.Equal(t, 1, strings.Count(seen.logged(), "the scorer fails"))
	require.Contains(t, seen.logged(), "deadline exceeded")
}

func TestNoMoreQuestionsThanConfiguredAreAskedAtOnce(t *testing.T) {
	const slots, askers = 3, 30
	s := newStuck(t)
	cfg := scorerAt(s.url)
	cfg.MaxInFlight, cfg.Timeout = slots, time.Minute
	g, seen := guard(t, Config{Scorer: cfg})
	transport, ok := g.scorer.client.Transport.(*http.Transport)
	require.True(t, ok)
	transport.MaxConnsPerHost = 0 // HTTP/2 asks many questions on one
	var all sync.WaitGroup
	for range askers {
		all.Go(func() { _ = g.Check(t.Context(), like(1, 1, ""), nil) })
	}
	for range slots {
		<-s.in
	}
	require.Len(t, g.scorer.slots, slots)
	close(s.free)
	all.Wait()
	require.Equal(t, map[string]int{"allow": askers}, seen.scored)
	require.EqualValues(t, slots, s.most.Load())
}

func TestWhoIsGoneSaysNothingAboutTheScorer(t *testing.T) {
	const askers = tripAfter + 5
	s := newStuck(t)
	cfg := scorerAt(s.url)
	cfg.MaxInFlight, cfg.Timeout = askers, time.Minute
	g, seen := guard(t, Config{Scorer: cfg})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var unavailable atomic.Int64
	for range askers {
		all.Go(func() {
			if errors.Is(g.Check(ctx, like(1, 1, ""), nil), likes.ErrUnavailable) {
				unavailable.Add(1)
			}
		})
	}
	for range askers {
		<-s.in
	}
	cancel()
	all.Wait()
	require.EqualValues(t, askers, unavailable.Load(), "a like passed that was not decided about")
	require.Empty(t, seen.scored)
	close(s.free)
	require.NoError(t, g.Check(t.Context(), like(1, 1, ""), nil))
	require.Equal(t, map[string]int{"allow": 1}, seen.scored)
}

func TestABusyScorerIsNotWaitedForLongerThanTheTimeout(t *testing.T) {
	s := newStuck(t)
	cfg := scorerAt(s.url)
	cfg.MaxInFlight, cfg.FailClosed, cfg.Timeout = 1, true, 10*time.Millisecond
	g, seen := guard(t, Config{Scorer: cfg})
	g.scorer.slots <- struct{}{} // somebody else's question
	require.ErrorIs(t, g.Check(t.Context(), like(1, 1, ""), nil), likes.ErrUnavailable)
	require.Equal(t, map[string]int{"busy": 1}, seen.scored)
	require.Empty(t, s.in)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, g.Check(gone, like(1, 1, ""), nil), likes.ErrUnavailable)
	require.Equal(t, map[string]int{"busy": 1}, seen.scored)
	<-g.scorer.slots
}

// transport is a scorer without a network, for a bubble of fake time.
type transport func() string

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) {
	var q question
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	_, _ = io.WriteString(w, `{"decision":"`+f()+`"}`)
	return w.Result(), nil
}

func TestAScorerThatComesBackIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := scorerAt("http://localhost/")
		cfg.FailClosed = true
		g, seen := open(t, Config{Scorer: cfg})
		asked, decision := 0, "maybe"
		g.scorer.client.Transport = transport(func() string { asked++; return decision })
		check := func() error { return g.Check(t.Context(), like(1, 1, ""), nil) }
		for range tripAfter + 50 {
			require.ErrorIs(t, check(), likes.ErrUnavailable)
		}
		require.Equal(t, tripAfter, asked)
		for range 3 { // still away: one question finds out
			time.Sleep(openFor + 1)
			for range 50 {
				require.ErrorIs(t, check(), likes.ErrUnavailable)
			}
		}
		require.Equal(t, tripAfter+3, asked)
		decision = "allow"
		require.ErrorIs(t, check(), likes.ErrUnavailable)
		time.Sleep(openFor + 1)
		for range 50 {
			require.NoError(t, check())
		}
		require.Equal(t, tripAfter+3+50, asked)
		require.Equal(t, 1, strings.Count(seen.logged(), "the scorer fails"), "once, and not every few seconds")
		require.Equal(t, 1, strings.Count(seen.logged(), "the scorer answers again"))
		require.NoError(t, g.Close(t.Context()))
	})
}

func TestABadScorerIsRefused(t *testing.T) {
	for _, url := range []string{"http://a.example/", "https://", "ftp://localhost/", "/x", "https://u:p@a.example/", "https://a.example/#x", "://", "http://127.0.0.1.nip.io/"} {
		s := scorerAt(url)
		require.ErrorIs(t, s.Check(), likes.ErrInvalid, url)
		_, err := Open(t.Context(), Config{Scorer: s, Refresh: time.Second})
		require.ErrorIs(t, err, likes.ErrInvalid, url)
	}
	for _, url := range []string{"https://a.example/score?v=1", "http://localhost:1/", "http://127.0.0.2", "http://[::1]:8/"} {
		s := scorerAt(url)
		require.NoError(t, s.Check(), url)
	}
	for _, s := range []Scorer{{URL: "http://localhost/", MaxInFlight: 1}, {URL: "http://localhost/", Timeout: -1, MaxInFlight: 1}, {URL: "http://localhost/", Timeout: 1}} {
		require.ErrorIs(t, s.Check(), likes.ErrInvalid)
	}
	for _, text := range []string{"", "\n", "two words", "a\x00", "größe", strings.Repeat("x", maxToken+1)} {
		s := scorerAt("http://localhost/")
		s.TokenFile = file(t, text)
		_, err := Open(t.Context(), Config{Scorer: s, Refresh: time.Second})
		require.ErrorIs(t, err, likes.ErrInvalid, "%q", text)
		require.ErrorContains(t, err, "token file ")
	}
}
