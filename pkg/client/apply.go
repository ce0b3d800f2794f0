package client

import (
	"context"
	"errors"
	"net/http"

	"likectl/pkg/likes"
)

// entry is an operation, a save, an event or an item on the wire.
type entry struct {
	UserID   likes.UserID `json:"user_id,omitempty,string"`
	ItemID   likes.ItemID `json:"item_id,string"`
	ItemType string       `json:"item_type"`
	Action   string       `json:"action,omitempty"`
	Counter  string       `json:"counter,omitempty"`
	EventID  string       `json:"event_id,omitempty"`
}

type batchQuery struct {
	Ops []entry `json:"ops"`
}

// applied is the answer to a mutation, or an entry of a batch's.
type applied struct {
	Status string `json:"status"`
	Count  *int64 `json:"count"`
	Hidden bool   `json:"hidden"`
	problem
}

type batchAnswer struct {
	Results []applied `json:"results"`
}

// Apply implements [likes.Service]. Each mutation is a request of its own, except
// that a service's operations, if there are several, go as one batch. Mutations on
// the same edge or tally stand behind one another; once one of them is uncertain
// the rest are not sent, since it may still be on its way.
func (c *Client) Apply(ctx context.Context, ms []likes.Mutation) []likes.Result {
	out := make([]likes.Result, len(ms))
	whole := likes.CheckApply(len(ms))
	var operations, events []int
	for i, m := range ms {
		err := whole
		if err == nil {
			err = c.check(m)
		}
		switch {
		case err != nil:
			out[i].Err = err
		case m.Op == likes.Add:
			events = append(events, i)
		default:
			operations = append(operations, i)
		}
	}
	batch := c.cfg.User == 0 && len(operations) > 1
	var rows [][]int
	if batch {
		rows = append(rows, operations)
	} else {
		rows = inRows(ms, operations)
	}
	rows = append(rows, inRows(ms, events)...)
	each(len(rows), func(n int) {
		if batch && n == 0 {
			c.batch(ctx, ms, rows[n], out)
		} else {
			c.oneByOne(ctx, ms, rows[n], out)
		}
	})
	return out
}

// check returns ErrInvalid for what the API would refuse or could not carry.
func (c *Client) check(m likes.Mutation) error {
	if err := m.Validate(); err != nil {
		return err
	}
	switch own := c.cfg.User; {
	case m.Fixed != 0:
		return likes.Errorf(likes.ErrInvalid, "a replay of %v: the API takes none; replays go through import", m.Edge)
	case !m.LikedAt.IsZero():
		return likes.Errorf(likes.ErrInvalid, "liked_at of %v: the API takes none; what began earlier goes through import", m.Edge)
	case m.After != 0:
		return likes.Errorf(likes.ErrInvalid, "after clock of %v: a client has no clocks, only versions; see Client.After", m.Edge)
	case own != 0 && m.Edge.User != own && (m.Op != likes.Add || m.Edge.User != 0):
		return errOther(m.Edge.User, own)
	}
	return c.checkType(m.Edge.Item.Type)
}

func errOther(user, own likes.UserID) error {
	return likes.Errorf(likes.ErrInvalid, "user %d: the token is user %d's, who acts for nobody else", user, own)
}

func (c *Client) checkType(t likes.ItemType) error {
	if known, _ := c.types.Type(c.types.Name(t)); known == t && t != 0 {
		return nil
	}
	return likes.Errorf(likes.ErrInvalid, "item_type %d: the server has none of that number", t)
}

// inRows puts mutations that must keep their order into a row, as positions.
func inRows(ms []likes.Mutation, at []int) [][]int {
	var rows [][]int
	by := make(map[likes.Edge]int, len(at))
	for _, i := range at {
		key := ms[i].Edge
		if ms[i].Op == likes.Add {
			key.User = 0 // the tally's events are counted one after the other
		}
		n, ok := by[key]
		if !ok {
			n = len(rows)
			by[key] = n
			rows = append(rows, nil)
		}
		rows[n] = append(rows[n], i)
	}
	return rows
}

func (c *Client) oneByOne(ctx context.Context, ms []likes.Mutation, at []int, out []likes.Result) {
	for n, i := range at {
		out[i] = c.one(ctx, ms[i])
		if !errors.Is(out[i].Err, likes.ErrUncertain) {
			continue
		}
		for _, later := range at[n+1:] {
			out[later].Err = likes.Errorf(likes.ErrUnavailable, "%v: not sent, nothing was applied: what stands before it is uncertain", ms[later].Edge)
		}
		return
	}
}

// route returns the method and path of a mutation.
func route(m likes.Mutation) (method, path string) {
	method = http.MethodPost
	if m.Op == likes.Clear {
		method = http.MethodDelete
	}
	switch m.Edge.Counter {
	case likes.Saves:
		return method, "/v1/save"
	case likes.Views:
		return method, "/v1/view"
	case likes.Shares:
		return method, "/v1/share"
	default:
		return method, "/v1/like"
	}
}

func (c *Client) entryOf(m likes.Mutation) entry {
	e := entry{ItemID: m.Edge.Item.ID, ItemType: c.types.Name(m.Edge.Item.Type)}
	if c.cfg.User == 0 { // with a user's token it would be refused
		e.UserID = m.Edge.User
	}
	if m.Op == likes.Add {
		e.EventID = m.Event.String()
	}
	return e
}

func (c *Client) one(ctx context.Context, m likes.Mutation) likes.Result {
	q := request{body: c.entryOf(m), header: "Like-Version", tokens: c.after, write: true}
	if m.Op == likes.Add {
		q.tokens = nil // events have no order
	}
	q.method, q.path = route(m)
	var a applied
	header, err := c.call(ctx, q, &a)
	if err != nil {
		return likes.Result{Err: err}
	}
	return a.result(&q, m, likes.Mark(header.Get("Like-Version")))
}

// batch sends operations as one request.
func (c *Client) batch(ctx context.Context, ms []likes.Mutation, at []int, out []likes.Result) {
	body := batchQuery{Ops: make([]entry, len(at))}
	for n, i := range at {
		body.Ops[n] = c.entryOf(ms[i])
		body.Ops[n].Action = ms[i].Op.String()
		body.Ops[n].Counter = ms[i].Edge.Counter.String()
	}
	q := request{method: http.MethodPost, path: "/v1/likes:batch", body: body, header: "Like-Version", tokens: c.after, write: true}
	var a batchAnswer
	_, err := c.call(ctx, q, &a)
	if err == nil && len(a.Results) != len(at) {
		err = q.unclear("%d results for %d operations", len(a.Results), len(at))
	}
	for n, i := range at {
		if err != nil {
			out[i].Err = err
			continue
		}
		out[i] = a.Results[n].result(&q, ms[i], "")
	}
}

// result returns what an answer says of a mutation.
func (a *applied) result(q *request, m likes.Mutation, token likes.Mark) likes.Result {
	r := likes.Result{Version: likes.Version{Edge: m.Edge, Mark: token}}
	switch {
	case a.Code != "":
		return likes.Result{Err: a.err(q, 0)}
	case a.Status == "accepted":
		r.Outcome = likes.Accepted
	case a.Status == "liked", a.Status == "unliked", a.Status == "saved", a.Status == "unsaved", a.Status == "counted":
		r.Outcome = likes.Changed
	case a.Status == "already_liked", a.Status == "not_liked", a.Status == "already_saved", a.Status == "not_saved", a.Status == "duplicate":
		r.Outcome = likes.Unchanged
	default:
		return likes.Result{Err: q.unclear("the answer's status is %.40q", a.Status)}
	}
	switch {
	case a.Hidden:
		r.Count.Err = errHidden(m.Edge.Item)
	case a.Count == nil:
		r.Count.Err = likes.Errorf(likes.ErrUnavailable, "%v: the answer has no count", q)
	default:
		r.Count = likes.Count{N: *a.Count, Source: likes.FromStore}
	}
	return r
}

func errHidden(item likes.Item) error {
	return likes.Errorf(ErrHidden, "the numbers of item %d:%d are for its owner alone", item.Type, item.ID)
}
