package httpapi

import "likectl/pkg/likes"

// entry is an object with an item in it: the body of a like, one of the items
// of counts, one of the operations of a batch. What was not given is 0.
type entry struct {
	user    likes.UserID
	item    likes.Item
	op      likes.Op
	counter likes.Counter
	event   likes.EventID
}

// entry reads an entry with the allowed members.
func (d *decoder) entry(allowed, required fields) (e entry, err error) {
	if err := d.open(); err != nil {
		return e, err
	}
	var seen fields
	for {
		f, err := d.next(&seen, allowed)
		if err != nil {
			return e, err
		}
		var id int64
		switch f {
		case fItemID:
			id, err = d.id()
			e.item.ID = likes.ItemID(id)
		case fItemType:
			e.item.Type, err = d.itemType()
		case fUserID:
			id, err = d.id()
			e.user = likes.UserID(id)
		case fAction:
			e.op, err = d.action()
		case fCounter:
			e.counter, err = d.counter(likes.ParseSetCounter)
		case fEventID:
			e.event, err = d.event()
		case 0:
			return e, d.require(seen, required)
		}
		if err != nil {
			return e, err
		}
	}
}

func (d *decoder) itemType() (likes.ItemType, error) {
	name, err := d.text("an item type in quotes")
	if err != nil {
		return 0, err
	}
	t, ok := d.types.TypeBytes(name)
	if !ok {
		return 0, d.fail("%q is unknown, "+wantType, clip(name))
	}
	return t, nil
}

func (d *decoder) action() (likes.Op, error) {
	name, err := d.text("an action in quotes")
	if err != nil {
		return 0, err
	}
	switch string(name) {
	case "like":
		return likes.Set, nil
	case "unlike":
		return likes.Clear, nil
	default:
		return 0, d.fail("%q is unknown, want like or unlike", clip(name))
	}
}

func (d *decoder) counter(parse func(string) (likes.Counter, error)) (likes.Counter, error) {
	name, err := d.text("a counter in quotes")
	if err != nil {
		return 0, err
	}
	c, err := parse(clip(name))
	if err != nil {
		return 0, d.fail("%w", err)
	}
	return c, nil
}

func (d *decoder) event() (likes.EventID, error) {
	text, err := d.text("a UUID in quotes")
	if err != nil {
		return likes.EventID{}, err
	}
	e, err := likes.ParseEventID(text)
	if err != nil {
		return likes.EventID{}, d.fail("%w", err)
	}
	return e, nil
}

// tally reads the body of POST /v1/view and /v1/share.
func (d *decoder) tally() (entry, error) {
	e, err := d.entry(fItemID|fItemType|fUserID|fEventID, fItemID|fItemType)
	if err != nil {
		return e, err
	}
	return e, d.end()
}

// like reads the body of POST and DELETE /v1/like and /v1/save.
func (d *decoder) like() (entry, error) {
	e, err := d.entry(fItemID|fItemType|fUserID, fItemID|fItemType)
	if err != nil {
		return e, err
	}
	return e, d.end()
}

// countsBody is the body of POST /v1/counts.
type countsBody struct {
	items    []likes.Item
	user     likes.UserID
	counters []likes.Counter
}

func (d *decoder) counts() (body countsBody, err error) {
	if err := d.open(); err != nil {
		return body, err
	}
	var seen fields
	for {
		f, err := d.next(&seen, fItems|fCounterTypes|fUserID)
		if err != nil {
			return body, err
		}
		switch f {
		case fItems:
			err = d.each(likes.MaxRead, func() error {
				e, err := d.entry(fItemID|fItemType, fItemID|fItemType)
				body.items = append(body.items, e.item)
				return err
			})
		case fCounterTypes:
			err = d.each(maxCounterTypes, func() error {
				c, err := d.counter(likes.ParseCounter)
				body.counters = append(body.counters, c)
				return err
			})
		case fUserID:
			err = d.user(&body.user)
		case 0:
			if err := d.require(seen, fItems); err != nil {
				return body, err
			}
			return body, d.end()
		}
		if err != nil {
			return body, err
		}
	}
}

// maxCounterTypes bounds a list that names each of four counters, perhaps twice.
const maxCounterTypes = 16

// hasBody is the body of POST /v1/has_liked.
type hasBody struct {
	items   []likes.Item
	user    likes.UserID
	counter likes.Counter
}

func (d *decoder) has() (body hasBody, err error) {
	if err := d.open(); err != nil {
		return body, err
	}
	var seen fields
	var itemType likes.ItemType
	for {
		f, err := d.next(&seen, fItemIDs|fItemType|fUserID|fCounter)
		if err != nil {
			return body, err
		}
		var id int64
		switch f {
		case fItemIDs:
			err = d.each(likes.MaxRead, func() error {
				id, err := d.id()
				body.items = append(body.items, likes.Item{ID: likes.ItemID(id)})
				return err
			})
		case fItemType:
			itemType, err = d.itemType()
		case fUserID:
			id, err = d.id()
			body.user = likes.UserID(id)
		case fCounter:
			body.counter, err = d.counter(likes.ParseSetCounter)
		case 0:
			if err := d.require(seen, fItemIDs|fItemType); err != nil {
				return body, err
			}
			for i := range body.items {
				body.items[i].Type = itemType
			}
			return body, d.end()
		}
		if err != nil {
			return body, err
		}
	}
}

// batch reads the body of POST /v1/likes:batch.
func (d *decoder) batch(after likes.Clock) (ms []likes.Mutation, err error) {
	if err := d.open(); err != nil {
		return nil, err
	}
	var seen fields
	for {
		f, err := d.next(&seen, fOps)
		if err != nil {
			return nil, err
		}
		if f == 0 {
			if err := d.require(seen, fOps); err != nil {
				return nil, err
			}
			return ms, d.end()
		}
		err = d.each(likes.MaxApply, func() error {
			const required = fItemID | fItemType | fUserID | fAction
			e, err := d.entry(required|fCounter, required)
			if e.counter == 0 {
				e.counter = likes.Likes
			}
			ms = append(ms, likes.Mutation{
				Op: e.op, Edge: likes.Edge{Counter: e.counter, Item: e.item, User: e.user}, After: after,
			})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
}
