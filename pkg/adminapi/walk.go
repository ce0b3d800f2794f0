package adminapi

import (
	"context"
	"net/http"
	"time"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

// edge is a likes.Edge on the wire.
type edge struct {
	key
	User int64 `json:"user_id,string"`
}

func newEdge(e likes.Edge) edge {
	return edge{newKey(store.Key{Counter: e.Counter, Item: e.Item}), int64(e.User)}
}

func (e edge) edge() likes.Edge {
	k := e.store()
	return likes.Edge{Counter: k.Counter, Item: k.Item, User: likes.UserID(e.User)}
}

// member is a liked edge; LikedAt is in microseconds since 1970.
type member struct {
	edge
	LikedAt int64 `json:"liked_at,string"`
}

type walkRequest struct {
	After edge `json:"after"`
	Limit int  `json:"limit"`
}

// membersAnswer is a page; without Next the walk has ended.
type membersAnswer struct {
	Edges []member `json:"edges"`
	Next  *edge    `json:"next,omitempty"`
}

// likedByRequest asks for the edges of the edge's user behind its item.
type likedByRequest struct {
	After edge `json:"after"`
	Limit int  `json:"limit"`
}

type estimateRequest struct {
	Counter likes.Counter `json:"counter"`
}

type estimateAnswer struct {
	Edges int64 `json:"edges,string"`
}

func (h *Handler) walk(w http.ResponseWriter, r *http.Request) {
	var request walkRequest
	if !h.read(w, r, &request) {
		return
	}
	if err := store.CheckWalk(request.Limit); err != nil {
		h.refuse(w, http.StatusBadRequest, "%v", err)
		return
	}
	page, err := h.config.Walker.WalkEdges(r.Context(), request.After.edge(), request.Limit)
	answer := membersAnswer{Edges: newMembers(page.Members)}
	if page.Next != (likes.Edge{}) {
		next := newEdge(page.Next)
		answer.Next = &next
	}
	h.answerOr(w, err, answer)
}

func (h *Handler) likedBy(w http.ResponseWriter, r *http.Request) {
	var request likedByRequest
	if !h.read(w, r, &request) {
		return
	}
	if request.Limit < 1 || request.Limit > likes.MaxPage {
		h.refuse(w, http.StatusBadRequest, "a page of %d edges, want 1 to %d", request.Limit, likes.MaxPage)
		return
	}
	e := request.After.edge()
	page, err := h.config.Walker.LikedBy(r.Context(), e.Counter, e.User, e.Item, request.Limit)
	h.answerOr(w, err, membersAnswer{Edges: newMembers(page)})
}

func (h *Handler) estimate(w http.ResponseWriter, r *http.Request) {
	var request estimateRequest
	if !h.read(w, r, &request) {
		return
	}
	n, err := h.config.Walker.EstimateEdges(r.Context(), request.Counter)
	h.answerOr(w, err, estimateAnswer{n})
}

// answerOr answers with the body, or with what a read's error means: the store
// did not answer.
func (h *Handler) answerOr(w http.ResponseWriter, err error, body any) {
	if err != nil {
		h.refuse(w, http.StatusServiceUnavailable, "%v", err)
		return
	}
	h.answer(w, http.StatusOK, "application/json", body)
}

func newMembers(page []likes.Member) []member {
	all := make([]member, len(page))
	for i, m := range page {
		all[i] = member{newEdge(m.Edge), m.LikedAt.UnixMicro()}
	}
	return all
}

func members(all []member) []likes.Member {
	page := make([]likes.Member, len(all))
	for i, m := range all {
		page[i] = likes.Member{Edge: m.edge.edge(), LikedAt: time.UnixMicro(m.LikedAt).UTC()}
	}
	return page
}

var _ store.Walker = (*Client)(nil)

// WalkEdges implements [store.Walker].
func (c *Client) WalkEdges(ctx context.Context, after likes.Edge, limit int) (store.EdgePage, error) {
	var answer membersAnswer
	err := c.call(ctx, http.MethodPost, pathWalk, walkRequest{newEdge(after), limit}, &answer)
	if err != nil {
		return store.EdgePage{}, err
	}
	page := store.EdgePage{Members: members(answer.Edges)}
	if answer.Next != nil {
		page.Next = answer.Next.edge()
	}
	return page, nil
}

// LikedBy implements [store.Walker].
func (c *Client) LikedBy(ctx context.Context, counter likes.Counter, user likes.UserID, after likes.Item, limit int) ([]likes.Member, error) {
	var answer membersAnswer
	e := likes.Edge{Counter: counter, Item: after, User: user}
	err := c.call(ctx, http.MethodPost, pathLikedBy, likedByRequest{newEdge(e), limit}, &answer)
	return members(answer.Edges), err
}

// EstimateEdges implements [store.Walker].
func (c *Client) EstimateEdges(ctx context.Context, counter likes.Counter) (int64, error) {
	var answer estimateAnswer
	err := c.call(ctx, http.MethodPost, pathEstimate, estimateRequest{counter}, &answer)
	return answer.Edges, err
}
