package outside

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"likectl/pkg/likes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// log is text that many may write.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

const (
	maxAnswer = 1 << 10
	tripAfter = 10
	openFor   = 5 * time.Second
)

// at is the configuration of a service; the timeout is long enough for a slow
// machine.
func at(url string) Config {
	return Config{
		Endpoint: Endpoint{URL: url, Timeout: 5 * time.Second, MaxInFlight: 8},
		Name:     "oracle", MaxAnswer: maxAnswer, TripAfter: tripAfter, OpenFor: openFor, TokenEvery: time.Millisecond,
	}
}

// open opens a service and closes it at the end of the test.
func open(t *testing.T, cfg Config) (*Service, *log) {
	t.Helper()
	l := &log{}
	cfg.Log = slog.New(slog.NewTextHandler(l, nil))
	s, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s, l
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func says(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }
}

// ask asks whether it says yes.
func ask(ctx context.Context, s *Service) error {
	var answer struct{ Says string }
	return s.Ask(ctx, map[string]int{"n": 1}, &answer, func() error {
		if answer.Says != "yes" {
			return errors.New("it does not say yes")
		}
		return nil
	})
}

const yes = `{"says":"yes"}`

func TestAsk_PostsAndHasTheAnswerChecked(t *testing.T) {
	asked := make(chan string, 1)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, authorized := r.Header["Authorization"]
		asked <- r.Method + " " + r.URL.String() + " " + r.Header.Get("Content-Type") + " " + string(body)
		if authorized {
			t.Error("a token from nowhere")
		}
		says(yes)(w, r)
	})
	s, _ := open(t, at(url+"/path?v=1"))
	require.NoError(t, ask(t.Context(), s))
	require.Equal(t, `POST /path?v=1 application/json {"n":1}`, <-asked)
}

func TestAsk_TheTokenIsReadAgain(t *testing.T) {
	var got atomic.Value
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got.Store(r.Header.Get("Authorization"))
		says(yes)(w, r)
	})
	name := filepath.Join(t.TempDir(), "token")
	replace := func(text string) {
		require.NoError(t, os.WriteFile(name+".next", []byte(text), 0o600))
		require.NoError(t, os.Rename(name+".next", name))
	}
	replace("first\n")
	cfg := at(url)
	cfg.TokenFile = name
	var bad atomic.Int64
	cfg.TokenRead = func(err error) {
		if err != nil {
			bad.Add(1)
		}
	}
	s, l := open(t, cfg)
	require.NoError(t, ask(t.Context(), s))
	require.Equal(t, "Bearer first", got.Load())
	replace("second")
	sends := func(token string) func() bool {
		return func() bool { return ask(t.Context(), s) == nil && got.Load() == "Bearer "+token }
	}
	require.Eventually(t, sends("second"), 10*time.Second, time.Millisecond)
	replace("two words")
	require.Eventually(t, func() bool { return bad.Load() > 1 }, 10*time.Second, time.Millisecond)
	require.True(t, sends("second")(), "a broken token is sent")
	replace("third")
	require.Eventually(t, sends("third"), 10*time.Second, time.Millisecond)
	for _, token := range []string{"first", "second", "third", "two words"} {
		require.NotContains(t, l.String(), token)
	}
}

func TestAsk_WhateverIsNoAnswerIsAFailure(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"500":        func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"204":        func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) },
		"empty":      says(""),
		"no JSON":    says("yes"),
		"two values": says(yes + "{}"),
		"a number":   says(`{"says":1}`),
		"no":         says(`{"says":"no"}`),
		"long":       says(yes + strings.Repeat(" ", maxAnswer)),
		"huge": func(w http.ResponseWriter, _ *http.Request) {
			for _, err := io.WriteString(w, yes); err == nil; { // until it is cut off
				_, err = io.WriteString(w, strings.Repeat(" ", 1<<10))
			}
		},
		"huge header": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 1<<20))
			says(yes)(w, r)
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
				return
			}
			says(yes)(w, r)
		},
		"hangs up":      func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"half answered": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "100") },
	} {
		var calls atomic.Int64
		s, _ := open(t, at(serve(t, func(w http.ResponseWriter, r *http.Request) {
			calls.Add(1)
			h(w, r)
		})+"/"))
		err := ask(t.Context(), s)
		require.Error(t, err, name)
		for _, kind := range []error{ErrBusy, ErrOpen, ErrGone} {
			require.NotErrorIs(t, err, kind, name)
		}
		require.EqualValues(t, 1, calls.Load(), "%s: followed or repeated", name)
	}
}

// stuck is a service that answers nobody until the test says so.
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
			says(yes)(w, r)
		case <-r.Context().Done():
		}
	})
	return s
}

func TestAsk_ASlowServiceCostsItsTimeoutAndThenNothing(t *testing.T) {
	slow := newStuck(t)
	cfg := at(slow.url)
	cfg.Timeout = 20 * time.Millisecond
	s, l := open(t, cfg)
	for range tripAfter {
		require.ErrorIs(t, ask(t.Context(), s), context.DeadlineExceeded)
	}
	for range 1000 {
		require.ErrorIs(t, ask(t.Context(), s), ErrOpen)
	}
	require.LessOrEqual(t, len(slow.in), tripAfter, "a service that does not answer is asked on and on")
	require.Equal(t, 1, strings.Count(l.String(), "fails and is asked only now and then"))
	require.Contains(t, l.String(), "service=oracle")
	require.Contains(t, l.String(), "deadline exceeded")
}

func TestAsk_NoMoreQuestionsAtOnceThanConfigured(t *testing.T) {
	const turns, askers = 3, 30
	slow := newStuck(t)
	cfg := at(slow.url)
	cfg.MaxInFlight, cfg.Timeout = turns, time.Minute
	s, _ := open(t, cfg)
	transport, ok := s.client.Transport.(*http.Transport)
	require.True(t, ok)
	transport.MaxConnsPerHost = 0 // HTTP/2 asks many questions on one
	var all sync.WaitGroup
	var answered atomic.Int64
	for range askers {
		all.Go(func() {
			if ask(t.Context(), s) == nil {
				answered.Add(1)
			}
		})
	}
	for range turns {
		<-slow.in
	}
	require.Len(t, s.turns, turns)
	close(slow.free)
	all.Wait()
	require.EqualValues(t, askers, answered.Load())
	require.EqualValues(t, turns, slow.most.Load())
}

func TestAsk_WhoIsGoneSaysNothingAboutTheService(t *testing.T) {
	const askers = tripAfter + 5
	slow := newStuck(t)
	cfg := at(slow.url)
	cfg.MaxInFlight, cfg.Timeout = askers, time.Minute
	s, l := open(t, cfg)
	canceled, cancel := context.WithCancel(t.Context())
	late, end := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer end()
	errs := make(chan error, askers)
	for range askers {
		go func() { errs <- ask(canceled, s) }()
	}
	for range askers {
		<-slow.in
	}
	cancel()
	for range askers {
		err := <-errs
		require.ErrorIs(t, err, ErrGone)
		require.ErrorIs(t, err, context.Canceled)
	}
	for range askers {
		err := ask(late, s)
		require.ErrorIs(t, err, ErrGone)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	close(slow.free)
	require.NoError(t, ask(t.Context(), s))
	require.Empty(t, l.String())
}

func TestAsk_ATurnIsNotWaitedForLongerThanTheTimeout(t *testing.T) {
	slow := newStuck(t)
	cfg := at(slow.url)
	cfg.MaxInFlight, cfg.Timeout = 1, 10*time.Millisecond
	s, _ := open(t, cfg)
	s.turns <- struct{}{} // somebody else's question
	for range tripAfter + 1 {
		require.ErrorIs(t, ask(t.Context(), s), ErrBusy)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, ask(gone, s), ErrGone)
	require.Empty(t, slow.in)
	<-s.turns
	close(slow.free)
	s.cfg.Timeout = time.Minute
	require.NoError(t, ask(t.Context(), s), "being busy is no failure")
}

// transport is a service without a network, for a bubble of fake time.
type transport func() string

func (f transport) RoundTrip(*http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	_, _ = io.WriteString(w, f())
	return w.Result(), nil
}

func TestAsk_AServiceThatComesBackIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := open(t, at("http://localhost/"))
		asked, answer := 0, `{"says":"maybe"}`
		s.client.Transport = transport(func() string { asked++; return answer })
		for range tripAfter + 50 {
			require.Error(t, ask(t.Context(), s))
		}
		require.Equal(t, tripAfter, asked)
		for range 3 { // still away: one question finds out
			time.Sleep(openFor + 1)
			for range 50 {
				require.Error(t, ask(t.Context(), s))
			}
		}
		require.Equal(t, tripAfter+3, asked)
		answer = yes
		require.ErrorIs(t, ask(t.Context(), s), ErrOpen)
		time.Sleep(openFor + 1)
		for range 50 {
			require.NoError(t, ask(t.Context(), s))
		}
		require.Equal(t, tripAfter+3+50, asked)
		require.Equal(t, 1, strings.Count(l.String(), "fails"), "once, and not every few seconds")
		require.Equal(t, 1, strings.Count(l.String(), "answers again"))
	})
}

// While one question finds out whether the service is back, the others do not wait
// for it.
func TestAsk_OneQuestionTriesAServiceThatWasAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := open(t, at("http://localhost/"))
		s.client.Transport = transport(func() string { return "" })
		for range tripAfter {
			require.Error(t, ask(t.Context(), s))
		}
		time.Sleep(openFor + 1)
		answer := make(chan string)
		s.client.Transport = transport(func() string { return <-answer })
		tried := make(chan error, 1)
		go func() { tried <- ask(t.Context(), s) }()
		synctest.Wait()
		require.ErrorIs(t, ask(t.Context(), s), ErrOpen)
		answer <- yes
		require.NoError(t, <-tried)
	})
}

func TestOpen_ABadEndpointIsRefused(t *testing.T) {
	for _, url := range []string{
		"", "a.example", "/x", "://", "http://a.example/", "http://10.0.0.1/", "ftp://localhost/", "https://", "https:///x", "https:a.example",
		"https://u:p@a.example/", "https://a.example/#x", "http://localhost.example/", "http://127.0.0.1.nip.io/",
	} {
		require.ErrorIs(t, at(url).Check(), likes.ErrInvalid, url)
		_, err := Open(t.Context(), at(url))
		require.ErrorIs(t, err, likes.ErrInvalid, url)
	}
	for _, url := range []string{"https://a.example/score?v=1", "http://localhost:1/", "http://127.0.0.2", "http://[::1]:8/"} {
		require.NoError(t, at(url).Check(), url)
	}
	for _, e := range []Endpoint{{MaxInFlight: 1}, {Timeout: -1, MaxInFlight: 1}, {Timeout: 1}} {
		e.URL = "http://localhost/"
		require.ErrorIs(t, e.Check(), likes.ErrInvalid)
	}
	for _, text := range []string{"", "\n", "two words", "a\x00", "größe", strings.Repeat("x", maxToken+1)} {
		cfg := at("http://localhost/")
		cfg.Log, cfg.TokenFile = slog.New(slog.DiscardHandler), filepath.Join(t.TempDir(), "token")
		require.NoError(t, os.WriteFile(cfg.TokenFile, []byte(text), 0o600))
		_, err := Open(t.Context(), cfg)
		require.ErrorIs(t, err, likes.ErrInvalid, "%q", text)
		require.ErrorContains(t, err, "token_file "+cfg.TokenFile)
	}
	var none *Service
	none.Close()
}
