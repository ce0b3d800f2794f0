package httpapi

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"likectl/pkg/likes"
	"likectl/pkg/visibility"
)

// count answers GET /v1/count.
func (a *API) count(ctx context.Context, c *call) error {
	q, err := parseQuery(c.r.URL.RawQuery, "item_id", "item_type", "type", "counter_types", "user_id")
	if err != nil {
		return err
	}
	item, err := q.item(&a.cfg.Types)
	if err != nil {
		return err
	}
	counters, err := q.counters()
	if err != nil {
		return err
	}
	viewer, err := q.viewer(c)
	if err != nil {
		return err
	}
	seen, err := c.seen()
	if err != nil {
		return err
	}
	sight, err := c.see(ctx, viewer, item)
	if err != nil {
		return err
	}
	b := appendID(append(c.out, `{"item_id":`...), item.ID)
	b = append(append(b, `,"item_type":"`...), a.cfg.Types.Name(item.Type)...)
	if !sight.CountsShown {
		b = append(b, `","hidden":true}`...)
		c.out = b
		return nil
	}
	totals := c.totals(ctx, orLikes(counters), []likes.Item{item}, nil, seen)
	if err := totals.err(0); err != nil {
		return err
	}
	c.etag = totals.etag(0)
	if viewer == visibility.Anonymous { // what anybody is told, anybody may keep
		c.cache, c.vary = shared, varyCount
	}
	if c.unchanged() {
		return nil
	}
	b = totals.append(append(b, `","counts":`...), 0)
	c.out = append(totals.appendOrigin(b, c), '}')
	return nil
}

// counts answers GET and POST /v1/counts.
func (a *API) counts(ctx context.Context, c *call) error {
	start := time.Now()
	body, err := a.countsInput(c)
	if err != nil {
		return err
	}
	seen, err := c.seen()
	if err != nil {
		return err
	}
	viewer, err := c.viewer(body.user)
	if err != nil {
		return err
	}
	items := unique(body.items)
	look, err := a.cfg.Guard.Look(ctx, viewer, items)
	if err != nil {
		return err
	}
	totals := c.totals(ctx, orLikes(body.counters), items, look, seen)
	b, err := appendKeyed(ctx, c, `{"counts":{`, len(items),
		func(b []byte, i int) []byte { return a.appendItemKey(b, items[i]) },
		totals.append, totals.err)
	if err != nil {
		return err
	}
	b = totals.appendOrigin(b, c)
	b = strconv.AppendInt(append(b, `,"took_ms":`...), time.Since(start).Milliseconds(), 10)
	b = append(b, '}')
	c.out = b
	return nil
}

func (a *API) countsInput(c *call) (countsBody, error) {
	if c.r.Method == http.MethodPost {
		d := decoder{b: c.in, types: &a.cfg.Types}
		return d.counts()
	}
	q, err := parseQuery(c.r.URL.RawQuery, "item_ids", "item_type", "type", "counter_types", "user_id")
	if err != nil {
		return countsBody{}, err
	}
	items, err := q.items(&a.cfg.Types)
	if err != nil {
		return countsBody{}, err
	}
	user, err := q.id("user_id", false)
	if err != nil {
		return countsBody{}, err
	}
	counters, err := q.counters()
	return countsBody{items: items, user: likes.UserID(user), counters: counters}, err
}

// totals are the counts of items in several counters.
type totals struct {
	counters []likes.Counter
	counts   [][]likes.Count // by counter, then by item
	look     visibility.Decisions
}

// totals reads the counts that may be shown; no others reach this process.
func (c *call) totals(
	ctx context.Context, counters []likes.Counter, items []likes.Item, look visibility.Decisions, seen []likes.Version,
) totals {
	t := totals{counters: counters, counts: make([][]likes.Count, len(counters)), look: look}
	shown, at := those(look, items, countsShown)
	w := c.waiter(seen)
	defer w.stop()
	for i, counter := range counters {
		var counts []likes.Count
		if len(shown) > 0 {
			counts = reached(ctx, w, shown, func(items []likes.Item) []likes.Count {
				return c.api.cfg.Service.Counts(ctx, counter, items, seen)
			}, func(n likes.Count) error { return n.Err })
		}
		t.counts[i] = spread(len(items), at, counts, likes.Count{Err: likes.ErrNotFound})
	}
	return t
}

// hidden says whether an item is to be seen and its counts are not.
func (t totals) hidden(item int) bool {
	d := t.look.At(item)
	return d.Visible && !d.CountsShown
}

// err returns the first error of an item: an item with one has no counts at all.
func (t totals) err(item int) error {
	if t.hidden(item) {
		return nil
	}
	for _, counts := range t.counts {
		if err := counts[item].Err; err != nil {
			return err
		}
	}
	return nil
}

// append appends the counts of an item.
func (t totals) append(b []byte, item int) []byte {
	if t.hidden(item) {
		return append(b, `{"hidden":true}`...)
	}
	for i, counter := range t.counters {
		open := byte(',')
		if i == 0 {
			open = '{'
		}
		b = append(append(append(b, open, '"'), counter.String()...), `":`...)
		b = strconv.AppendInt(b, t.counts[i][item].N, 10)
	}
	return append(b, '}')
}

// appendOrigin appends where the counts come from and how old the oldest is.
func (t totals) appendOrigin(b []byte, c *call) []byte {
	var oldest time.Time
	cached := false
	for _, counts := range t.counts {
		for _, n := range counts {
			if n.Err != nil {
				continue
			}
			cached = cached || n.Source != likes.FromStore
			c.stale = c.stale || n.Source == likes.FromStale
			if oldest.IsZero() || n.AsOf.Before(oldest) {
				oldest = n.AsOf
			}
		}
	}
	b = appendBool(append(b, ','), "cached", cached)
	if !oldest.IsZero() {
		b = appendTime(append(b, `,"as_of":`...), oldest)
	}
	return b
}

// hasLiked answers GET and POST /v1/has_liked.
func (a *API) hasLiked(ctx context.Context, c *call) error {
	body, err := a.hasInput(c)
	if err != nil {
		return err
	}
	user, err := c.actor(body.user)
	if err != nil {
		return err
	}
	seen, err := c.seen()
	if err != nil {
		return err
	}
	if body.counter == 0 {
		body.counter = likes.Likes
	}
	items := unique(body.items)
	look, err := a.cfg.Guard.Look(ctx, user, items)
	if err != nil {
		return err
	}
	some, at := those(look, items, visible)
	var members []likes.Membership
	if len(some) > 0 {
		w := c.waiter(seen)
		defer w.stop()
		members = reached(ctx, w, some, func(items []likes.Item) []likes.Membership {
			return a.cfg.Service.Has(ctx, body.counter, user, items, seen)
		}, func(m likes.Membership) error { return m.Err })
	}
	members = spread(len(items), at, members, likes.Membership{Err: likes.ErrNotFound})
	b, err := appendKeyed(ctx, c, `{"liked":{`, len(items),
		func(b []byte, i int) []byte { return appendID(b, items[i].ID) },
		func(b []byte, i int) []byte { return strconv.AppendBool(b, members[i].Liked) },
		func(i int) error { return members[i].Err })
	if err != nil {
		return err
	}
	b = append(b, '}')
	c.out = b
	return nil
}

func (a *API) hasInput(c *call) (hasBody, error) {
	if c.r.Method == http.MethodPost {
		d := decoder{b: c.in, types: &a.cfg.Types}
		return d.has()
	}
	q, err := parseQuery(c.r.URL.RawQuery, "item_ids", "item_type", "type", "user_id", "counter")
	if err != nil {
		return hasBody{}, err
	}
	items, err := q.items(&a.cfg.Types)
	if err != nil {
		return hasBody{}, err
	}
	user, err := q.id("user_id", false)
	if err != nil {
		return hasBody{}, err
	}
	counter, err := q.counter()
	return hasBody{items: items, user: likes.UserID(user), counter: counter}, err
}

// defaultPage is the number of likers in a page unless the client says.
const defaultPage = 100

// maxCursor is the longest cursor that is looked at.
const maxCursor = 1024

// listing is which page of which relation a call asks for.
type listing struct {
	counter likes.Counter
	from    likes.Cursor
	limit   int
}

// listing reads what all listings ask alike. They take version tokens like every
// read, but need none: where edges lag, the contract says by how much.
func (c *call) listing(q *query) (l listing, err error) {
	if l.counter, err = q.counter(); err != nil {
		return l, err
	}
	if l.from, l.limit, err = q.page(); err != nil {
		return l, err
	}
	_, err = c.seen()
	return l, err
}

// likers answers GET /v1/likers.
func (a *API) likers(ctx context.Context, c *call) error {
	q, err := parseQuery(c.r.URL.RawQuery, "item_id", "item_type", "type", "counter", "cursor", "limit", "user_id")
	if err != nil {
		return err
	}
	item, err := q.item(&a.cfg.Types)
	if err != nil {
		return err
	}
	viewer, err := q.viewer(c)
	if err != nil {
		return err
	}
	l, err := c.listing(&q)
	if err != nil {
		return err
	}
	sight, err := c.see(ctx, viewer, item)
	if err != nil {
		return err
	}
	if !sight.CountsShown { // whoever can count the list knows the number
		c.out = append(c.out, `{"hidden":true,"likers":[],"next_cursor":""}`...)
		return nil
	}
	page, next, err := a.cfg.Service.Likers(ctx, l.counter, item, l.from, l.limit)
	if err != nil {
		return err
	}
	if page, err = a.unblocked(ctx, viewer, page); err != nil {
		return err
	}
	c.appendPage(`{"likers":[`, page, next, func(b []byte, m likes.Member) []byte {
		return appendID(append(b, `"user_id":`...), m.Edge.User)
	})
	return nil
}

// likedBy answers GET /v1/me/likes.
func (a *API) likedBy(ctx context.Context, c *call) error {
	q, err := parseQuery(c.r.URL.RawQuery, "user_id", "counter", "cursor", "limit")
	if err != nil {
		return err
	}
	named, err := q.id("user_id", false)
	if err != nil {
		return err
	}
	user, err := c.actor(likes.UserID(named))
	if err != nil {
		return err
	}
	l, err := c.listing(&q)
	if err != nil {
		return err
	}
	page, next, err := a.cfg.Service.LikedBy(ctx, l.counter, user, l.from, l.limit)
	if err != nil {
		return err
	}
	if page, err = a.seen(ctx, user, page); err != nil {
		return err
	}
	c.appendPage(`{"likes":[`, page, next, func(b []byte, m likes.Member) []byte {
		b = appendID(append(b, `"item_id":`...), m.Edge.Item.ID)
		b = append(append(b, `,"item_type":"`...), a.cfg.Types.Name(m.Edge.Item.Type)...)
		return append(b, '"')
	})
	return nil
}

// appendPage appends a page of a listing: of each member what name appends, and
// when its like began.
func (c *call) appendPage(head string, page []likes.Member, next likes.Cursor, name func([]byte, likes.Member) []byte) {
	b := c.out
	b = append(b, head...)
	for i, m := range page {
		if i > 0 {
			b = append(b, ',')
		}
		b = name(append(b, '{'), m)
		b = appendTime(append(b, `,"liked_at":`...), m.LikedAt)
		b = append(b, '}')
	}
	c.out = append(appendString(append(b, `],"next_cursor":`...), string(next)), '}')
}

// appendKeyed appends n entries as members of an object that has been opened by
// head and closes it; entries with an error are left out of it and put into a
// sibling "errors". If all of them failed by the service's fault it returns the
// error of the whole.
func appendKeyed(
	ctx context.Context, c *call, head string, n int, key, value func([]byte, int) []byte, errOf func(int) error,
) ([]byte, error) {
	var failed failures
	b := c.out
	b = append(b, head...)
	for i := range n {
		if err := errOf(i); err != nil {
			failed.add(err)
			continue
		}
		if i > failed.n {
			b = append(b, ',')
		}
		b = value(append(key(b, i), ':'), i)
	}
	b = append(b, '}')
	if failed.n == 0 {
		return b, nil
	}
	b = append(b, `,"errors":{`...)
	first := true
	for i := range n {
		if err := errOf(i); err != nil {
			if !first {
				b = append(b, ',')
			}
			first = false
			b = appendEntryError(append(key(b, i), ':'), err)
		}
	}
	return append(b, '}'), failed.of(ctx, c, n)
}

// unique returns the items without repeats, in their order: an object has each
// key once, and a store need not be asked twice.
func unique(items []likes.Item) []likes.Item {
	const few = 16 // below, looking at all is cheaper than a map
	out := items[:0]
	if len(items) <= few {
		for _, item := range items {
			if !slices.Contains(out, item) {
				out = append(out, item)
			}
		}
		return out
	}
	known := make(map[likes.Item]struct{}, len(items))
	for _, item := range items {
		if _, ok := known[item]; !ok {
			known[item] = struct{}{}
			out = append(out, item)
		}
	}
	return out
}

// orLikes returns the counters without repeats, likes if there are none.
func orLikes(cs []likes.Counter) []likes.Counter {
	if len(cs) == 0 {
		return []likes.Counter{likes.Likes}
	}
	slices.Sort(cs)
	return slices.Compact(cs)
}
