package visibility

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"likectl/pkg/likes"
	"likectl/pkg/outside"
)

// AuthorizerConfig says where an outside authorizer is.
type AuthorizerConfig struct {
	outside.Endpoint

	// Types are the names of item types.
	Types likes.ItemTypes
	Log   *slog.Logger
}

// maxAnswer is the largest answer that is read: [likes.MaxRead] decisions of about
// 40 bytes, three times over.
const maxAnswer = 64 << 10

const (
	// tripAfter failures in a row the authorizer is left alone for openFor, which
	// is short: while it is, nobody sees anything.
	tripAfter = 5
	openFor   = time.Second
	// tokenEvery is how often the token is read again.
	tokenEvery = 5 * time.Second
)

// Authorizer asks another service, by one POST for up to [likes.MaxRead] items:
//
//	{"viewer":"9","items":[{"item_id":"1","item_type":"post"}]}
//
// where viewer is null without a token, and for a backend that names no user. The
// answer is 200 and by position:
//
//	{"decisions":[{"visible":true,"counts":"shown"}]}
//
// counts is shown or hidden, and not needed of what is not visible. Whatever else
// comes back is a fault.
type Authorizer struct {
	service *outside.Service
	types   likes.ItemTypes
}

// OpenAuthorizer reads the token and returns an authorizer. It makes no call: one
// that is away is an error of the calls that need it. Its error is ErrInvalid that
// names the field.
func OpenAuthorizer(ctx context.Context, cfg AuthorizerConfig) (*Authorizer, error) {
	service, err := outside.Open(ctx, outside.Config{
		Endpoint: cfg.Endpoint, Name: "authorizer", MaxAnswer: maxAnswer, TripAfter: tripAfter, OpenFor: openFor,
		TokenEvery: tokenEvery, Log: cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	return &Authorizer{service, cfg.Types}, nil
}

// Close ends the reading of the token and drops the connections that are not in
// use.
func (a *Authorizer) Close(context.Context) error {
	a.service.Close()
	return nil
}

// The two bodies.
type (
	question struct {
		Viewer *string `json:"viewer"`
		Items  []named `json:"items"`
	}
	named struct {
		ItemID   string `json:"item_id"`
		ItemType string `json:"item_type"`
	}
	verdict struct {
		Visible *bool  `json:"visible"`
		Counts  string `json:"counts"`
	}
)

// Decide asks about 1 to [likes.MaxRead] items, by position.
func (a *Authorizer) Decide(ctx context.Context, viewer likes.UserID, items []likes.Item, out []Decision) error {
	q := question{Items: make([]named, len(items))}
	if viewer > 0 {
		id := strconv.FormatInt(int64(viewer), 10)
		q.Viewer = &id
	}
	for i, item := range items {
		q.Items[i] = named{strconv.FormatInt(int64(item.ID), 10), a.types.Name(item.Type)}
	}
	var answer struct {
		Decisions []verdict `json:"decisions"`
	}
	found := make([]Decision, len(items))
	if err := a.service.Ask(ctx, q, &answer, func() error { return decisions(answer.Decisions, found) }); err != nil {
		return fmt.Errorf("authorizer: %w", err)
	}
	copy(out, found)
	return nil
}

// decisions makes decisions of an answer, one for each item that was asked about.
func decisions(vs []verdict, out []Decision) error {
	if len(vs) != len(out) {
		return fmt.Errorf("its answer has %d decisions for %d items", len(vs), len(out))
	}
	for i, v := range vs {
		switch {
		case v.Visible == nil:
			return fmt.Errorf("decisions[%d] does not say visible", i)
		case v.Counts != "shown" && v.Counts != "hidden" && (*v.Visible || v.Counts != ""):
			return fmt.Errorf("decisions[%d]: counts %.20q, want shown or hidden", i, v.Counts)
		}
		out[i] = Decision{Visible: *v.Visible, CountsShown: *v.Visible && v.Counts == "shown"}
	}
	return nil
}
