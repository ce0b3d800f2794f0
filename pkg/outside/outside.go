package outside

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"likectl/pkg/bounded"
	"likectl/pkg/reload"
)

// What keeps a question from being answered, besides a service that fails.
var (
	// ErrBusy: there was no turn within the timeout. The service was not asked.
	ErrBusy = errors.New("too many questions at once")
	// ErrOpen: it failed so often that it is left alone. The service was not asked.
	ErrOpen = errors.New("it has failed and is left alone for a while")
	// ErrGone: who asked has gone, or has no time left, which says nothing about
	// the service. It wraps the context's error.
	ErrGone = errors.New("the request has ended")
)

// Config is a service and how it is treated. Only TokenRead may be left out.
type Config struct {
	Endpoint

	// Name is what logs call the service.
	Name string
	// MaxAnswer bounds an answer, in bytes.
	MaxAnswer int64
	// After TripAfter failures in a row the service is left alone for OpenFor;
	// then one question finds out whether it is back.
	TripAfter uint32
	OpenFor   time.Duration
	// TokenEvery is how often TokenFile is read again, and TokenRead is told of
	// each of those readings.
	TokenEvery time.Duration
	TokenRead  func(error)
	Log        *slog.Logger
}

const (
	// maxHeader bounds the headers of an answer, in bytes.
	maxHeader = 16 << 10
	// idle is how long a connection without a question is kept.
	idle = 30 * time.Second
)

// Service asks. It is safe for concurrent use.
type Service struct {
	cfg       Config
	client    *http.Client
	turns     chan struct{}
	breaker   *gobreaker.CircuitBreaker[struct{}]
	tokenFile *reload.File           // nil: none
	token     atomic.Pointer[string] // the header Authorization; nil: none
	last      atomic.Value           // the last failure, as text
}

// Open reads the token and returns the service. It asks nothing: one that is away
// is an error of the questions. Its error is ErrInvalid and names the field.
func Open(ctx context.Context, cfg Config) (*Service, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	cfg.Log = cfg.Log.With("service", cfg.Name)
	s := &Service{cfg: cfg, turns: make(chan struct{}, cfg.MaxInFlight)}
	s.client = &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, DisableCompression: true,
			MaxConnsPerHost: cfg.MaxInFlight, MaxIdleConnsPerHost: cfg.MaxInFlight, IdleConnTimeout: idle,
			TLSHandshakeTimeout: cfg.Timeout, MaxResponseHeaderBytes: maxHeader,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	s.breaker = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:       cfg.OpenFor,
		ReadyToTrip:   func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= cfg.TripAfter },
		IsExcluded:    func(err error) bool { return errors.Is(err, ErrGone) },
		OnStateChange: s.changed,
	})
	if cfg.TokenFile != "" {
		var err error
		s.tokenFile, err = reload.Open(ctx, reload.Config{
			Name: "token_file", Path: cfg.TokenFile, MaxBytes: maxToken, Every: cfg.TokenEvery, Use: s.setToken, Read: cfg.TokenRead, Log: cfg.Log,
		})
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// changed logs that the service is left alone, and that it is back, but not each
// question that has shown that it is still away.
func (s *Service) changed(_ string, from, to gobreaker.State) {
	switch {
	case from == gobreaker.StateClosed:
		s.cfg.Log.Warn("an outside service fails and is asked only now and then", "every", s.cfg.OpenFor, "error", s.last.Load())
	case to == gobreaker.StateClosed:
		s.cfg.Log.Info("an outside service answers again")
	}
}

func (s *Service) setToken(doc []byte) error {
	token, err := parseToken(doc)
	if err != nil {
		return err
	}
	header := "Bearer " + token
	s.token.Store(&header)
	return nil
}

// Close drops the connections that are not in use. A nil Service is closed.
func (s *Service) Close() {
	if s != nil {
		s.tokenFile.Close()
		s.client.CloseIdleConnections()
	}
}

// Ask posts the question as JSON and decodes the answer, which check, as the last
// step, may find wrong: that too is a failure of the service. The error is
// ErrBusy, ErrOpen, ErrGone, or says how the service failed; then what is in
// answer means nothing.
func (s *Service) Ask(parent context.Context, question, answer any, check func() error) error {
	ctx, cancel := context.WithTimeout(parent, s.cfg.Timeout)
	defer cancel()
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		if parent.Err() != nil {
			return gone(parent)
		}
		return fmt.Errorf("%w: all %d are in use", ErrBusy, s.cfg.MaxInFlight)
	}
	_, err := s.breaker.Execute(func() (struct{}, error) {
		err := s.post(ctx, question, answer)
		if err == nil {
			err = check()
		}
		switch {
		case err == nil:
		case parent.Err() != nil:
			err = gone(parent)
		default:
			s.last.Store(err.Error())
		}
		return struct{}{}, err
	})
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return ErrOpen
	}
	return err
}

func gone(parent context.Context) error { return fmt.Errorf("%w: %w", ErrGone, parent.Err()) }

func (s *Service) post(ctx context.Context, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header["Content-Type"] = []string{"application/json"}
	if token := s.token.Load(); token != nil {
		req.Header["Authorization"] = []string{*token}
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it has been read
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answered %s, want 200", resp.Status)
	}
	body, err = bounded.ReadAll(resp.Body, s.cfg.MaxAnswer)
	if err == nil {
		err = json.Unmarshal(body, answer)
	}
	if err != nil {
		return fmt.Errorf("read its answer: %w", err)
	}
	return nil
}
