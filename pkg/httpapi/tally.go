package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"likectl/pkg/auth"
	"likectl/pkg/likes"
	"likectl/pkg/visibility"
)

// tally returns the handler of POST /v1/view and /v1/share. An event that has
// been counted is as good as a new one: it answers 200 and adds nothing.
func (a *API) tally(counter likes.Counter) func(context.Context, *call) error {
	return func(ctx context.Context, c *call) error {
		d := decoder{b: c.in, types: &a.cfg.Types}
		e, err := d.tally()
		if err != nil {
			return err
		}
		viewer, err := c.viewer(e.user)
		if err != nil {
			return err
		}
		minted := e.event == likes.EventID{}
		if minted {
			e.event = likes.NewEventID(time.Now())
		}
		m := likes.Mutation{Op: likes.Add, Edge: likes.Edge{Counter: counter, Item: e.item, User: max(viewer, visibility.Anonymous)}, Event: e.event}
		if err := c.takeMutation(ctx, m); err != nil {
			return err
		}
		sight, err := c.see(ctx, viewer, e.item)
		if err != nil {
			return err
		}
		r := a.cfg.Service.Apply(ctx, []likes.Mutation{m})[0]
		switch {
		case r.Err != nil && minted:
			return repeatable(r.Err, m.Event)
		case r.Err != nil:
			return r.Err
		case r.Outcome == likes.Accepted:
			c.status = http.StatusAccepted
		}
		c.out = appendAdded(c.out, r, sight.CountsShown)
		return nil
	}
}

// causer returns the user who caused an event, 0 if nobody says who: without a
// token, where the route allows that, and with a service's that names none.
func (c *call) causer(named likes.UserID) (likes.UserID, error) {
	switch {
	case c.caller == auth.Identity{} && named != 0:
		return 0, likes.Errorf(likes.ErrInvalid, "user_id: not allowed here: only a service token may name a user")
	case c.caller == auth.Identity{}, c.caller.Scope >= auth.Service && named == 0:
		return 0, nil
	default:
		return c.actor(named)
	}
}

// repeatable adds to an error after which something may have been counted the
// only id with which repeating it is safe: the client has not seen it.
func repeatable(err error, event likes.EventID) error {
	for _, kind := range []error{likes.ErrUncertain, context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, kind) {
			return &problemError{kind: err, detail: fmt.Sprintf(
				"the event may have been counted; repeating it is safe with this event_id: %v", event)}
		}
	}
	return err
}

// appendAdded appends the answer to an Add that has no error, to somebody who may or
// may not know the count.
func appendAdded(b []byte, r likes.Result, shown bool) []byte {
	status := "duplicate"
	switch r.Outcome {
	case likes.Changed:
		status = "counted"
	case likes.Accepted:
		status = "accepted"
	default:
	}
	b = append(append(append(b, `{"status":"`...), status...), '"')
	return append(appendCountOf(b, r, shown), '}')
}
