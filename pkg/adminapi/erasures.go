package adminapi

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"likectl/pkg/erase"
	"likectl/pkg/likes"
	"likectl/pkg/store"
)

// The calls below pathErasures, each one method of [erase.Registry]. A command
// makes the steps of an erasure one by one, so that it can be interrupted, and
// the pace is its own. Ids are in bodies, never in paths, which get logged.
const (
	callBegin      = "begin"
	callStep       = "step"
	callRecord     = "record"
	callUnfinished = "unfinished"
	callRemains    = "remains"
	callReceipt    = "receipt"
	callVerify     = "verify"
)

// userID is a likes.UserID on the wire: a string, also in lists.
type userID struct {
	ID int64 `json:"id,string"`
}

func userIDs(users []likes.UserID) []userID {
	out := make([]userID, len(users))
	for i, u := range users {
		out[i] = userID{int64(u)}
	}
	return out
}

func usersOf(ids []userID) []likes.UserID {
	out := make([]likes.UserID, len(ids))
	for i, id := range ids {
		out[i] = likes.UserID(id.ID)
	}
	return out
}

type beginRequest struct {
	Users []userID `json:"users"`
	Into  int64    `json:"into,string"`
}

type beginAnswer struct{}

// erasureRequest is about one user; Limit is for a step, Receipt for verify.
type erasureRequest struct {
	User    int64          `json:"user_id,string"`
	Limit   int            `json:"limit,omitempty"`
	Receipt *erase.Receipt `json:"receipt,omitempty"`
}

func (e erasureRequest) user() likes.UserID { return likes.UserID(e.User) }

// erasure is a store.Erasure on the wire.
type erasure struct {
	Hash       string    `json:"user_hash"`
	Begun      time.Time `json:"begun_at"`
	Finished   time.Time `json:"finished_at"` // year 1: not yet
	Merged     bool      `json:"merged"`
	Edges      int64     `json:"edges"`
	Tombstones int64     `json:"tombstones"`
	Relations  int64     `json:"relations"`
}

func newErasure(e store.Erasure) erasure {
	return erasure{e.User.String(), e.Begun, e.Finished, e.Merged, e.Edges, e.Tombstones, e.Relations}
}

func (e erasure) store() (store.Erasure, error) {
	out := store.Erasure{
		Begun: e.Begun, Finished: e.Finished, Merged: e.Merged, Edges: e.Edges, Tombstones: e.Tombstones, Relations: e.Relations,
	}
	if n, err := hex.Decode(out.User[:], []byte(e.Hash)[:min(len(e.Hash), 2*len(out.User))]); err != nil || n != len(out.User) {
		return out, fmt.Errorf("the user's hash %.40q is not one", e.Hash)
	}
	return out, nil
}

// recordAnswer has no Record if no erasure has begun.
type recordAnswer struct {
	Record *erasure `json:"record,omitempty"`
}

type unfinishedRequest struct {
	Limit int `json:"limit"`
}

type unfinishedAnswer struct {
	Users []userID `json:"users"`
}

type remainsAnswer struct {
	Edges      int64 `json:"edges"`
	Tombstones int64 `json:"tombstones"`
	Relations  int64 `json:"relations"`
}

// receiptAnswer has an Error if there is no receipt, or none yet.
type receiptAnswer struct {
	Receipt erase.Receipt `json:"receipt"`
	Error   *fault        `json:"error,omitempty"`
}

type verifyAnswer struct {
	Findings []erase.Finding `json:"findings"`
}

// handleErasures adds the calls' handlers.
func (h *Handler) handleErasures() {
	handle(h, callBegin, func(ctx context.Context, r beginRequest) (beginAnswer, error) {
		if n := len(r.Users); n < 1 || n > store.MaxErase {
			return beginAnswer{}, likes.Errorf(likes.ErrInvalid, "%d users, want 1 to %d", n, store.MaxErase)
		}
		return beginAnswer{}, h.config.Erasures.BeginErase(ctx, usersOf(r.Users), likes.UserID(r.Into))
	})
	handle(h, callStep, func(ctx context.Context, r erasureRequest) (erasure, error) {
		if r.Limit < 1 || r.Limit > store.MaxErase {
			return erasure{}, likes.Errorf(likes.ErrInvalid, "a step of %d rows, want 1 to %d", r.Limit, store.MaxErase)
		}
		e, err := h.config.Erasures.StepErase(ctx, r.user(), r.Limit)
		return newErasure(e), err
	})
	handle(h, callRecord, func(ctx context.Context, r erasureRequest) (recordAnswer, error) {
		e, begun, err := h.config.Erasures.Erasure(ctx, r.user())
		if err != nil || !begun {
			return recordAnswer{}, err
		}
		record := newErasure(e)
		return recordAnswer{&record}, nil
	})
	handle(h, callUnfinished, func(ctx context.Context, r unfinishedRequest) (unfinishedAnswer, error) {
		if r.Limit < 1 || r.Limit > store.MaxErase {
			return unfinishedAnswer{}, likes.Errorf(likes.ErrInvalid, "%d users, want 1 to %d", r.Limit, store.MaxErase)
		}
		users, err := h.config.Erasures.Unfinished(ctx, r.Limit)
		return unfinishedAnswer{userIDs(users)}, err
	})
	handle(h, callRemains, func(ctx context.Context, r erasureRequest) (remainsAnswer, error) {
		left, err := h.config.Erasures.Remains(ctx, r.user())
		return remainsAnswer(left), err
	})
	handle(h, callReceipt, func(ctx context.Context, r erasureRequest) (receiptAnswer, error) {
		receipt, err := h.config.Erasures.Receipt(ctx, r.user())
		if errors.Is(err, likes.ErrNotFound) || errors.Is(err, likes.ErrNotYet) {
			return receiptAnswer{Error: newFault(err)}, nil
		}
		return receiptAnswer{Receipt: receipt}, err
	})
	handle(h, callVerify, func(ctx context.Context, r erasureRequest) (verifyAnswer, error) {
		found, err := h.config.Erasures.Verify(ctx, r.user(), r.Receipt)
		return verifyAnswer{found}, err
	})
}

// handle adds the handler of one call. A request about no valid user is refused
// before the store is asked.
func handle[Request, Answer any](h *Handler, call string, do func(context.Context, Request) (Answer, error)) {
	h.mux.HandleFunc("POST "+pathErasures+call, func(w http.ResponseWriter, r *http.Request) {
		var request Request
		if !h.read(w, r, &request) {
			return
		}
		if e, ok := any(request).(erasureRequest); ok && e.User < 1 {
			h.refuse(w, http.StatusBadRequest, "user_id is %d, want an id above 0", e.User)
			return
		}
		answer, err := do(r.Context(), request)
		if err == nil {
			h.answer(w, http.StatusOK, "application/json", answer)
			return
		}
		status := http.StatusServiceUnavailable
		switch {
		case errors.Is(err, likes.ErrInvalid):
			status = http.StatusBadRequest
		case errors.Is(err, likes.ErrUncertain):
			status = http.StatusInternalServerError
		}
		h.refuse(w, status, "%v", err)
	})
}

var _ erase.Registry = (*Client)(nil)

func (c *Client) erasures(ctx context.Context, call string, request, answer any) error {
	return c.call(ctx, http.MethodPost, pathErasures+call, request, answer)
}

// BeginErase implements [erase.Store].
func (c *Client) BeginErase(ctx context.Context, users []likes.UserID, into likes.UserID) error {
	return c.erasures(ctx, callBegin, beginRequest{userIDs(users), int64(into)}, &beginAnswer{})
}

// StepErase implements [erase.Store].
func (c *Client) StepErase(ctx context.Context, user likes.UserID, limit int) (store.Erasure, error) {
	var answer erasure
	if err := c.erasures(ctx, callStep, erasureRequest{User: int64(user), Limit: limit}, &answer); err != nil {
		return store.Erasure{}, err
	}
	return answer.store()
}

// Erasure implements [erase.Store].
func (c *Client) Erasure(ctx context.Context, user likes.UserID) (store.Erasure, bool, error) {
	var answer recordAnswer
	err := c.erasures(ctx, callRecord, erasureRequest{User: int64(user)}, &answer)
	if err != nil || answer.Record == nil {
		return store.Erasure{}, false, err
	}
	e, err := answer.Record.store()
	return e, err == nil, err
}

// Unfinished implements [erase.Store].
func (c *Client) Unfinished(ctx context.Context, limit int) ([]likes.UserID, error) {
	var answer unfinishedAnswer
	err := c.erasures(ctx, callUnfinished, unfinishedRequest{limit}, &answer)
	return usersOf(answer.Users), err
}

// Remains implements [erase.Store].
func (c *Client) Remains(ctx context.Context, user likes.UserID) (store.Remains, error) {
	var answer remainsAnswer
	err := c.erasures(ctx, callRemains, erasureRequest{User: int64(user)}, &answer)
	return store.Remains(answer), err
}

// Receipt implements [erase.Registry].
func (c *Client) Receipt(ctx context.Context, user likes.UserID) (erase.Receipt, error) {
	var answer receiptAnswer
	if err := c.erasures(ctx, callReceipt, erasureRequest{User: int64(user)}, &answer); err != nil {
		return erase.Receipt{}, err
	}
	return answer.Receipt, answer.Error.err()
}

// Verify implements [erase.Registry].
func (c *Client) Verify(ctx context.Context, user likes.UserID, r *erase.Receipt) ([]erase.Finding, error) {
	var answer verifyAnswer
	err := c.erasures(ctx, callVerify, erasureRequest{User: int64(user), Receipt: r}, &answer)
	return answer.Findings, err
}
