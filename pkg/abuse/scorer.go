package abuse

import (
	"context"
	"errors"
	"fmt"
	"time"

	"likectl/pkg/likes"
	"likectl/pkg/outside"
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
	// Endpoint is where it is. Its URL is empty: none.
	outside.Endpoint

	// FailClosed says that a like is refused (likes.ErrUnavailable) while the
	// scorer does not answer. Otherwise it passes.
	FailClosed bool
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
	// maxDecision bounds an answer in bytes.
	maxDecision = 4 << 10
	// tripAfter failures in a row the scorer is left alone for openFor.
	tripAfter = 10
	openFor   = 5 * time.Second
)

// scorer asks.
type scorer struct {
	service *outside.Service
	types   likes.ItemTypes
}

func openScorer(ctx context.Context, cfg *Config) (*scorer, error) {
	c := outside.Config{
		Endpoint: cfg.Scorer.Endpoint, Name: "scorer", MaxAnswer: maxDecision, TripAfter: tripAfter, OpenFor: openFor,
		TokenEvery: cfg.Refresh, TokenRead: cfg.read("token"), Log: cfg.Log.With("fail_closed", cfg.Scorer.FailClosed),
	}
	service, err := outside.Open(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("scorer: %w", err)
	}
	return &scorer{service, cfg.Types}, nil
}

// score asks the scorer and makes its answer, or its silence, an error or nil.
func (g *Guard) score(ctx context.Context, a Attempt) error {
	allow, err := g.scorer.decide(ctx, a)
	if errors.Is(err, outside.ErrGone) {
		return likes.Errorf(likes.ErrUnavailable, "ask the scorer: %w", err)
	}
	if g.cfg.Hooks.Scored != nil {
		g.cfg.Hooks.Scored(resultOf(allow, err))
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

// resultOf is one of [Results].
func resultOf(allow bool, err error) string {
	switch {
	case errors.Is(err, outside.ErrBusy):
		return resultBusy
	case errors.Is(err, outside.ErrOpen):
		return resultOpen
	case err != nil:
		return resultError
	case allow:
		return resultAllow
	default:
		return resultRefuse
	}
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

// decide asks the scorer once.
func (s *scorer) decide(ctx context.Context, a Attempt) (allow bool, err error) {
	q := question{
		User: a.Edge.User, Item: a.Edge.Item.ID, Type: s.types.Name(a.Edge.Item.Type), Device: a.Device.String(), Action: "like",
	}
	if a.Edge.Counter == likes.Saves {
		q.Action = "save"
	}
	if a.Addr.IsValid() {
		q.IP = a.Addr.String()
	}
	var answer struct {
		Decision string `json:"decision"`
	}
	err = s.service.Ask(ctx, q, &answer, func() error {
		if answer.Decision != resultAllow && answer.Decision != resultRefuse {
			return fmt.Errorf("it decided %.20q, want allow or refuse", answer.Decision)
		}
		return nil
	})
	return err == nil && answer.Decision == resultAllow, err
}
