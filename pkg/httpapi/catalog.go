package httpapi

import (
	"context"
	"strconv"

	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/visibility"
)

// These routes tell the API about items and users. They are the product's
// backend's: whoever may write here decides who sees what.

// putItem answers PUT /v1/items.
func (a *API) putItem(ctx context.Context, c *call) error {
	d := decoder{b: c.in, types: &a.cfg.Types}
	change, err := d.itemChange()
	if err != nil {
		return err
	}
	return a.changeItem(ctx, c, change)
}

// deleteItem answers DELETE /v1/items.
func (a *API) deleteItem(ctx context.Context, c *call) error {
	d := decoder{b: c.in, types: &a.cfg.Types}
	e, err := d.entry(fItemID|fItemType, fItemID|fItemType)
	if err != nil {
		return err
	}
	if err := d.end(); err != nil {
		return err
	}
	return a.changeItem(ctx, c, store.ItemChange{Item: e.item, State: visibility.Deleted})
}

func (a *API) changeItem(ctx context.Context, c *call, change store.ItemChange) error {
	// After an error, too: it may have been applied.
	defer a.cfg.Guard.ForgetItem(change.Item)
	now, changed, err := a.cfg.Catalog.PutItem(ctx, change)
	if err != nil {
		return err
	}
	b := appendID(append(c.out, `{"item_id":`...), now.Item.ID)
	b = append(append(append(b, `,"item_type":"`...), a.cfg.Types.Name(now.Item.Type)...), '"')
	if now.Owner != 0 {
		b = appendID(append(b, `,"owner_id":`...), now.Owner)
	}
	b = append(append(append(b, `,"visibility":"`...), now.Level.String()...), '"')
	b = append(append(append(b, `,"state":"`...), now.State.String()...), '"')
	b = append(append(append(b, `,"counts":"`...), countsName(now.HideCounts)...), `",`...)
	c.out = append(appendBool(b, "changed", changed), '}')
	return nil
}

// countsName is what HideCounts is called on the wire.
func countsName(hide bool) string {
	if hide {
		return "hidden"
	}
	return "shown"
}

// block returns the handler of PUT and DELETE /v1/blocks.
func (a *API) block(on bool) func(context.Context, *call) error {
	return func(ctx context.Context, c *call) error {
		d := decoder{b: c.in, types: &a.cfg.Types}
		b, err := d.block()
		if err != nil {
			return err
		}
		if b.Blocker == 0 {
			defer a.cfg.Guard.ForgetItem(b.Item)
		} else {
			defer a.cfg.Guard.ForgetUsers(b.Blocker, b.Blocked)
		}
		changed, err := a.cfg.Catalog.PutBlock(ctx, b, on)
		return c.changed(changed, err)
	}
}

// follow returns the handler of PUT and DELETE /v1/follows.
func (a *API) follow(on bool) func(context.Context, *call) error {
	return func(ctx context.Context, c *call) error {
		d := decoder{b: c.in, types: &a.cfg.Types}
		f, err := d.follow()
		if err != nil {
			return err
		}
		defer a.cfg.Guard.ForgetUsers(f.Follower)
		changed, err := a.cfg.Catalog.PutFollow(ctx, f, on)
		return c.changed(changed, err)
	}
}

// changed answers a change that has nothing else to say.
func (c *call) changed(changed bool, err error) error {
	if err != nil {
		return err
	}
	c.out = append(appendBool(append(c.out, '{'), "changed", changed), '}')
	return nil
}

// userTotals answers GET /v1/users/{id}/totals.
func (a *API) userTotals(ctx context.Context, c *call) error {
	if c.r.URL.RawQuery != "" {
		return likes.Errorf(likes.ErrInvalid, "query: none is read here")
	}
	id, err := likes.ParseID(c.r.PathValue("id"))
	if err != nil {
		return likes.Errorf(likes.ErrInvalid, "id: %w", err)
	}
	t, err := a.cfg.Catalog.Totals(ctx, likes.UserID(id))
	if err != nil {
		return err
	}
	all := []likes.Counter{likes.Likes, likes.Saves, likes.Views, likes.Shares}
	b := appendID(append(c.out, `{"user_id":`...), id)
	b = appendTotals(append(b, `,"given":`...), t.Given, likes.SetCounters())
	b = appendTotals(append(b, `,"received":`...), t.Received, all)
	b = append(appendTotals(append(b, `,"received_hidden":`...), t.ReceivedHidden, all), '}')
	c.out = b
	return nil
}

func appendTotals(b []byte, sums map[likes.Counter]int64, counters []likes.Counter) []byte {
	for i, counter := range counters {
		open := byte(',')
		if i == 0 {
			open = '{'
		}
		b = append(append(append(b, open, '"'), counter.String()...), `":`...)
		b = strconv.AppendInt(b, sums[counter], 10)
	}
	return append(b, '}')
}
