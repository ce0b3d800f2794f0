package httpapi

import (
	"context"
	"errors"
	"fmt"

	"likectl/pkg/abuse"
	"likectl/pkg/auth"
	"likectl/pkg/likes"
	"likectl/pkg/limit"
)

// device reads the device of a like or save, where a guard is there to use it: it
// is a part of the request, and a malformed one refuses it.
func (c *call) device(op likes.Op) (abuse.Device, error) {
	if c.api.cfg.Abuse == nil || op != likes.Set {
		return abuse.Device{}, nil
	}
	name := c.api.cfg.DeviceHeader
	switch values := c.r.Header[name]; len(values) {
	case 0:
		return abuse.Device{}, nil
	case 1:
		d, err := abuse.ParseDevice(values[0])
		if err != nil {
			err = likes.Errorf(likes.ErrInvalid, "header %s: %w", name, err)
		}
		return d, err
	default:
		return abuse.Device{}, likes.Errorf(likes.ErrInvalid, "header %s: %d of them, want one", name, len(values))
	}
}

// attempt returns what the guard is asked about. A service's address is its own
// and says nothing about the user that it acts for.
func (c *call) attempt(e likes.Edge, d abuse.Device) abuse.Attempt {
	a := abuse.Attempt{Edge: e, Device: d}
	if c.caller.Scope < auth.Service {
		a.Addr = c.client()
		a.Network = addrKey(a.Addr)
	}
	return a
}

// checkAbuse asks the guard about a like or save, the last thing before the
// service. What takes one back is never refused.
func (c *call) checkAbuse(ctx context.Context, m likes.Mutation, d abuse.Device) error {
	guard := c.api.cfg.Abuse
	if guard == nil || m.Op != likes.Set {
		return nil
	}
	return abuseProblem(guard.Check(ctx, c.attempt(m.Edge, d), c.api.cfg.OwnerOf))
}

// applyBatch applies what the guard does not refuse; the results are by position.
func (a *API) applyBatch(ctx context.Context, c *call, ms []likes.Mutation, d abuse.Device) []likes.Result {
	guard := a.cfg.Abuse
	if guard == nil || !guard.Batch() {
		return a.cfg.Service.Apply(ctx, ms)
	}
	var asked []abuse.Attempt
	for _, m := range ms {
		if m.Op == likes.Set {
			asked = append(asked, c.attempt(m.Edge, d))
		}
	}
	errs := guard.CheckBatch(ctx, asked, a.cfg.OwnerOf)
	results := make([]likes.Result, len(ms))
	passed, places := make([]likes.Mutation, 0, len(ms)), make([]int, 0, len(ms))
	for i, m := range ms {
		if m.Op == likes.Set {
			results[i].Err = abuseProblem(errs[0])
			errs = errs[1:]
		}
		if results[i].Err == nil {
			passed, places = append(passed, m), append(places, i)
		}
	}
	if len(passed) > 0 {
		for i, r := range a.cfg.Service.Apply(ctx, passed) {
			results[places[i]] = r
		}
	}
	return results
}

// abuseProblem makes a used-up velocity limit the 429 that every limit is. No
// header says how a caller stands with them: an item's would tell how often others
// like it, and a user's that he has been slowed.
func abuseProblem(err error) error {
	used, ok := errors.AsType[*abuse.LimitError](err)
	if !ok {
		return err
	}
	wait := limit.Seconds(used.RetryAfter)
	return &problemError{kind: errRate, retry: wait, detail: fmt.Sprintf("%v; nothing was applied; try again in %d s", used, wait)}
}
