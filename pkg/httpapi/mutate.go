package httpapi

import (
	"context"
	"net/http"

	"likectl/pkg/likes"
)

// mutate returns the handler of POST and DELETE /v1/like and /v1/save. A repeat is as good as
// the first time: it answers 200 and changes nothing.
func (a *API) mutate(counter likes.Counter, op likes.Op) func(context.Context, *call) error {
	return func(ctx context.Context, c *call) error {
		d := decoder{b: c.in, types: &a.cfg.Types}
		e, err := d.like()
		if err != nil {
			return err
		}
		user, err := c.actor(e.user)
		if err != nil {
			return err
		}
		after, err := c.after()
		if err != nil {
			return err
		}
		device, err := c.device(op)
		if err != nil {
			return err
		}
		m := likes.Mutation{Op: op, Edge: likes.Edge{Counter: counter, Item: e.item, User: user}, After: after}
		if err := c.takeMutation(ctx, m); err != nil {
			return err
		}
		sight, err := c.see(ctx, user, e.item)
		if err != nil {
			return err
		}
		if err := c.checkAbuse(ctx, m, device); err != nil {
			return err
		}
		r := a.cfg.Service.Apply(ctx, []likes.Mutation{m})[0]
		if r.Err != nil {
			return r.Err
		}
		c.version(r.Version)
		if r.Outcome == likes.Accepted {
			c.status = http.StatusAccepted
		}
		c.out = a.appendResult(c.out, m, r, sight.CountsShown)
		return nil
	}
}

// version puts a version token on the answer. The write stands without one, so a
// version that cannot be encoded costs the client only the token.
func (c *call) version(v likes.Version) {
	var buf [128]byte
	token, err := c.api.cfg.Versions.Append(buf[:0], v)
	if err != nil {
		c.api.cfg.Logger.Error("version token left out", "request_id", c.id, "error", err)
		return
	}
	c.like = string(token)
}

// batch answers POST /v1/likes:batch. Malformed entries refuse the whole batch;
// what the service says of an entry stands at its position.
func (a *API) batch(ctx context.Context, c *call) error {
	after, err := c.after()
	if err != nil {
		return err
	}
	d := decoder{b: c.in, types: &a.cfg.Types}
	ms, err := d.batch(after)
	if err != nil {
		return err
	}
	device, err := c.device(likes.Set)
	if err != nil {
		return err
	}
	results, look, err := a.apply(ctx, c, ms, device)
	if err != nil {
		return err
	}
	var failed failures
	b := c.out
	b = append(b, `{"results":[`...)
	for i, r := range results {
		if i > 0 {
			b = append(b, ',')
		}
		if failed.add(r.Err); r.Err != nil {
			b = appendEntryError(b, r.Err)
			continue
		}
		b = a.appendResult(b, ms[i], r, look.At(i).CountsShown)
	}
	b = append(b, "]}"...)
	c.out = b
	return failed.of(ctx, c, len(results))
}
