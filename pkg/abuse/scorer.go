package abuse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"likectl/pkg/likes"
)

// Scorer is an HTTP service that is asked about every like which nothing else
// refuses. It is sent a POST of
//
//	{"user_id":"1","item_id":"2","item_type":"post","ip":"192.0.2.1","device":"sha256:…","action":"like"}
//
// where ip and device are "" if unknown and action is like or save, and answers
// 200 with {"decision":"allow"} or {"decision":"refuse"}; other members are not
// read.
type Scorer struct {
	// URL is where it listens, https except on this machine. Empty: none.
	URL string
	// TokenFile holds a bearer token that it is sent. Empty: none.
	TokenFile string
	// Timeout is the time for an answer, waiting for its turn included.
	Timeout time.Duration
	// FailClosed says that a like is refused (likes.ErrUnavailable) while the
	// scorer does not answer. Otherwise it passes.
	FailClosed bool
	// MaxInFlight is how many questions are asked at once.
	MaxInFlight int
}

// Check returns ErrInvalid that names the field out of range. It does no IO.
func (s *Scorer) Check() error {
	u, err := url.Parse(s.URL)
	switch {
	case err != nil:
		return likes.Errorf(likes.ErrInvalid, "url: %w", err)
	case u.Host == "" || u.Opaque != "" || u.Fragment != "" || u.User != nil:
		return likes.Errorf(likes.ErrInvalid, "url: want https://HOST/PATH without a password")
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		return likes.Errorf(likes.ErrInvalid, "url: want https, except on this machine")
	case s.Timeout <= 0:
		return likes.Errorf(likes.ErrInvalid, "timeout: %v, want more than 0", s.Timeout)
	case s.MaxInFlight < 1:
		return likes.Errorf(likes.ErrInvalid, "max_in_flight: %d, want at least 1", s.MaxInFlight)
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// How a question to the scorer ended, in metrics.
const (
	resultAllow  = "allow"
	resultRefuse = "refuse"
	resultError  = "error"
	resultOpen   = "open"
	resultBusy   = "busy"
)

// Results returns how a question to the scorer can end, as [Hooks].Scored is told:
// "allow" or "refuse"; "error" if it failed; "open" if it was not asked because it
// failed before; "busy" if it was not asked in time because others were.
func Results() []string {
	return []string{resultAllow, resultRefuse, resultError, resultOpen, resultBusy}
}

const (
	// maxDecision bounds an answer in bytes, maxDecisionHeader its headers.
	maxDecision, maxDecisionHeader = 4 << 10, 16 << 10
	// idle is how long a connection without a question is kept.
	idle = 30 * time.Second
	// tripAfter failures in a row the scorer is left alone for openFor; then one
	// question finds out whether it is back. A like then costs no timeout while
	// the scorer is away, and the scorer is not flooded while it comes back.
	tripAfter = 10
	openFor   = 5 * time.Second
)

// errGone: the one who asked is gone, which says nothing about the scorer.
var errGone = errors.New("the request has ended")

var errBusy = errors.New("too many questions at once")

// scorer asks.
type scorer struct {
	cfg     Scorer
	types   likes.ItemTypes
	client  *http.Client
	slots   chan struct{}
	breaker *gobreaker.CircuitBreaker[bool]
	token   atomic.Pointer[string] // the header Authorization; nil: none
	last    atomic.Value           // the last failure, as text
}

func newScorer(cfg Scorer, types likes.ItemTypes, log *slog.Logger) (*scorer, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	s := &scorer{cfg: cfg, types: types, slots: make(chan struct{}, cfg.MaxInFlight)}
	s.client = &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, DisableCompression: true,
			MaxConnsPerHost: cfg.MaxInFlight, MaxIdleConnsPerHost: cfg.MaxInFlight, IdleConnTimeout: idle,
			MaxResponseHeaderBytes: maxDecisionHeader,
		},
		// A redirect could lead away from https with a user's address.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	s.breaker = gobreaker.NewCircuitBreaker[bool](gobreaker.Settings{
		Timeout:     openFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= tripAfter },
		IsExcluded:  func(err error) bool { return errors.Is(err, errGone) },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			switch { // not when one question has shown that it is still away
			case from == gobreaker.StateClosed:
				log.Warn("the scorer fails and is asked only now and then", "every", openFor, "likes_are_refused", cfg.FailClosed, "error", s.last.Load())
			case to == gobreaker.StateClosed:
				log.Info("the scorer answers again")
			}
		},
	})
	return s, nil
}

func (s *scorer) setToken(doc []byte) error {
	token, err := parseToken(doc)
	if err != nil {
		return err
	}
	header := "Bearer " + token
	s.token.Store(&header)
	return nil
}

// score asks the scorer and makes its answer, or its silence, an error or nil.
func (g *Guard) score(ctx context.Context, a Attempt) error {
	allow, err := g.scorer.decide(ctx, a)
	result := resultAllow
	switch {
	case errors.Is(err, errGone):
		return likes.Errorf(likes.ErrUnavailable, "ask the scorer: %w", err)
	case errors.Is(err, errBusy):
		result = resultBusy
	case errors.Is(err, gobreaker.ErrOpenState), errors.Is(err, gobreaker.ErrTooManyRequests):
		result = resultOpen
	case err != nil:
		result = resultError
	case !allow:
		result = resultRefuse
	}
	if g.cfg.Hooks.Scored != nil {
		g.cfg.Hooks.Scored(result)
	}
	switch {
	case err == nil && !allow:
		return g.refuse(reasonScorer, ErrRefused)
	case err != nil && g.cfg.Scorer.FailClosed:
		return g.refuse(reasonScorerError, likes.Errorf(likes.ErrUnavailable, "ask the scorer: %w", err))
	default:
		return nil
	}
}

// decide asks the scorer once.
func (s *scorer) decide(parent context.Context, a Attempt) (allow bool, err error) {
	ctx, cancel := context.WithTimeout(parent, s.cfg.Timeout)
	defer cancel()
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		if parent.Err() != nil {
			return false, errGone
		}
		return false, errBusy
	}
	return s.breaker.Execute(func() (bool, error) {
		allow, err := s.post(ctx, a)
		switch {
		case err == nil:
		case parent.Err() != nil:
			return false, errGone
		default:
			s.last.Store(err.Error())
		}
		return allow, err
	})
}

// question is what the scorer is sent.
type question struct {
	User   likes.UserID `json:"user_id,string"`
	Item   likes.ItemID `json:"item_id,string"`
	Type   string       `json:"item_type"`
	IP     string       `json:"ip"`
	Device string       `json:"device"`
	Action string       `json:"action"`
}

func (s *scorer) post(ctx context.Context, a Attempt) (allow bool, err error) {
	q := question{
		User: a.Edge.User, Item: a.Edge.Item.ID, Type: s.types.Name(a.Edge.Item.Type), Device: a.Device.String(), Action: "like",
	}
	if a.Edge.Counter == likes.Saves {
		q.Action = "save"
	}
	if a.Addr.IsValid() {
		q.IP = a.Addr.String()
	}
	body, err := json.Marshal(q)
	if err != nil {
		return false, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.URL, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header["Content-Type"] = []string{"application/json"}
	if token := s.token.Load(); token != nil {
		req.Header["Authorization"] = []string{*token}
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close() //nolint:errcheck // it has been read
	if resp.StatusCode != http.StatusOK {
		return false, fmt.Errorf("it answered %s, want 200", resp.Status)
	}
	answer, err := readAll(resp.Body, maxDecision)
	if err != nil {
		return false, fmt.Errorf("read its answer: %w", err)
	}
	var decision struct {
		Decision string `json:"decision"`
	}
	if err := json.Unmarshal(answer, &decision); err != nil {
		return false, fmt.Errorf("read its answer: %w", err)
	}
	if decision.Decision != resultAllow && decision.Decision != resultRefuse {
		return false, fmt.Errorf("it decided %.20q, want allow or refuse", decision.Decision)
	}
	return decision.Decision == resultAllow, nil
}
