package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"likectl/pkg/likes"
)

type countsQuery struct {
	Items    []entry  `json:"items"`
	Counters []string `json:"counter_types"`
}

// counted is an item's entry in the answer of counts.
type counted struct {
	Likes  *int64 `json:"likes"`
	Saves  *int64 `json:"saves"`
	Views  *int64 `json:"views"`
	Shares *int64 `json:"shares"`
	Hidden bool   `json:"hidden"`
}

func (c *counted) of(counter likes.Counter) *int64 {
	switch counter {
	case likes.Saves:
		return c.Saves
	case likes.Views:
		return c.Views
	case likes.Shares:
		return c.Shares
	default:
		return c.Likes
	}
}

type countsAnswer struct {
	Counts map[string]counted `json:"counts"`
	Errors map[string]problem `json:"errors"`
	Cached bool               `json:"cached"`
	AsOf   time.Time          `json:"as_of"`
}

// Counts implements [likes.Service]. It asks past shared caches, and with more
// versions than a request takes it asks for some of the items at a time.
func (c *Client) Counts(ctx context.Context, counter likes.Counter, items []likes.Item, seen []likes.Version) []likes.Count {
	out := make([]likes.Count, len(items))
	parts, err := c.parts(likes.CheckCounts(counter, items), items, seen, false)
	if err != nil {
		for i := range out {
			out[i].Err = err
		}
		return out
	}
	each(len(parts), func(n int) { c.countPart(ctx, counter, items, parts[n], out) })
	return out
}

// parts divides a read into what a request can carry, unless something is wrong
// with it: err, an item type or a version.
func (c *Client) parts(err error, items []likes.Item, seen []likes.Version, byType bool) ([]*part, error) {
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		if err := c.checkType(item.Type); err != nil {
			return nil, err
		}
	}
	tokens, err := tokensOf(items, seen)
	if err != nil {
		return nil, err
	}
	return split(items, tokens, byType), nil
}

// keyOf is the name of an item in the answer of counts.
func (c *Client) keyOf(item likes.Item) string {
	return c.types.Name(item.Type) + ":" + strconv.FormatInt(int64(item.ID), 10)
}

func (c *Client) countPart(ctx context.Context, counter likes.Counter, items []likes.Item, p *part, out []likes.Count) {
	body := countsQuery{Counters: []string{counter.String()}, Items: make([]entry, len(p.at))}
	for n, i := range p.at {
		body.Items[n] = entry{ItemID: items[i].ID, ItemType: c.types.Name(items[i].Type)}
	}
	q := request{method: http.MethodPost, path: "/v1/counts", body: body, header: "Like-Min-Version", tokens: p.tokens}
	var a countsAnswer
	header, err := c.call(ctx, q, &a)
	source := likes.FromStore
	switch {
	case err == nil && header.Get("X-Stale-Data") != "":
		source = likes.FromStale
	case a.Cached:
		source = likes.FromCache
	}
	for _, i := range p.at {
		key := c.keyOf(items[i])
		entry, failed := a.Counts[key], a.Errors[key]
		switch n := entry.of(counter); {
		case err != nil:
			out[i].Err = err
		case failed.Code != "":
			out[i].Err = failed.err(&q, 0)
		case entry.Hidden:
			out[i].Err = errHidden(items[i])
		case n == nil:
			out[i].Err = q.unclear("the answer has no %v of %s", counter, key)
		default:
			out[i] = likes.Count{N: *n, AsOf: a.AsOf, Source: source}
		}
	}
}

type hasQuery struct {
	ItemIDs  []string     `json:"item_ids"`
	ItemType string       `json:"item_type"`
	UserID   likes.UserID `json:"user_id,omitempty,string"`
	Counter  string       `json:"counter"`
}

type hasAnswer struct {
	Liked  map[string]bool    `json:"liked"`
	Errors map[string]problem `json:"errors"`
}

// Has implements [likes.Service]: a request for each type of the items, and more
// with more versions than a request takes.
func (c *Client) Has(ctx context.Context, counter likes.Counter, user likes.UserID, items []likes.Item, seen []likes.Version) []likes.Membership {
	out := make([]likes.Membership, len(items))
	err := likes.CheckHas(counter, user, items)
	if err == nil && c.cfg.User != 0 && user != c.cfg.User {
		err = errOther(user, c.cfg.User)
	}
	parts, err := c.parts(err, items, seen, true)
	if err != nil {
		for i := range out {
			out[i].Err = err
		}
		return out
	}
	each(len(parts), func(n int) { c.hasPart(ctx, counter, user, items, parts[n], out) })
	return out
}

func (c *Client) hasPart(ctx context.Context, counter likes.Counter, user likes.UserID, items []likes.Item, p *part, out []likes.Membership) {
	body := hasQuery{Counter: counter.String(), ItemType: c.types.Name(items[p.at[0]].Type), ItemIDs: make([]string, len(p.at))}
	if c.cfg.User == 0 {
		body.UserID = user
	}
	for n, i := range p.at {
		body.ItemIDs[n] = strconv.FormatInt(int64(items[i].ID), 10)
	}
	q := request{method: http.MethodPost, path: "/v1/has_liked", body: body, header: "Like-Min-Version", tokens: p.tokens}
	var a hasAnswer
	_, err := c.call(ctx, q, &a)
	for n, i := range p.at {
		key := body.ItemIDs[n]
		liked, answered := a.Liked[key]
		failed := a.Errors[key]
		switch {
		case err != nil:
			out[i].Err = err
		case failed.Code != "":
			out[i].Err = failed.err(&q, 0)
		case !answered:
			out[i].Err = q.unclear("the answer has no item %s", key)
		default:
			out[i].Liked = liked
		}
	}
}

// page is the answer of a listing; of its two lists it has one, which may be empty.
type page struct {
	Likers []listed     `json:"likers"`
	Likes  []listed     `json:"likes"`
	Next   likes.Cursor `json:"next_cursor"`
	Hidden bool         `json:"hidden"`
}

type listed struct {
	UserID   string    `json:"user_id"`
	ItemID   string    `json:"item_id"`
	ItemType string    `json:"item_type"`
	LikedAt  time.Time `json:"liked_at"`
}

// Likers implements [likes.Service].
func (c *Client) Likers(ctx context.Context, counter likes.Counter, item likes.Item, cur likes.Cursor, limit int) ([]likes.Member, likes.Cursor, error) {
	for _, err := range []error{likes.CheckPage(counter, limit), item.Validate(), c.checkType(item.Type)} {
		if err != nil {
			return nil, "", err
		}
	}
	query := url.Values{"item_id": {strconv.FormatInt(int64(item.ID), 10)}, "item_type": {c.types.Name(item.Type)}}
	p, q, err := c.page(ctx, "/v1/likers", query, counter, cur, limit)
	switch {
	case err != nil:
		return nil, "", err
	case p.Hidden:
		return nil, "", errHidden(item)
	case p.Likers == nil:
		return nil, "", q.unclear("the answer has no likers")
	}
	members := make([]likes.Member, len(p.Likers))
	for i, l := range p.Likers {
		user, err := likes.ParseID(l.UserID)
		if err != nil {
			return nil, "", q.unclear("likers[%d].user_id is %.40q, which is no id", i, l.UserID)
		}
		members[i] = likes.Member{Edge: likes.Edge{Counter: counter, Item: item, User: likes.UserID(user)}, LikedAt: l.LikedAt}
	}
	return members, p.Next, nil
}

// LikedBy implements [likes.Service].
func (c *Client) LikedBy(ctx context.Context, counter likes.Counter, user likes.UserID, cur likes.Cursor, limit int) ([]likes.Member, likes.Cursor, error) {
	query := url.Values{}
	switch own := c.cfg.User; {
	case own == 0:
		query.Set("user_id", strconv.FormatInt(int64(user), 10))
	case user != own:
		return nil, "", errOther(user, own)
	}
	for _, err := range []error{likes.CheckPage(counter, limit), likes.CheckUser(user)} {
		if err != nil {
			return nil, "", err
		}
	}
	p, q, err := c.page(ctx, "/v1/me/likes", query, counter, cur, limit)
	switch {
	case err != nil:
		return nil, "", err
	case p.Likes == nil:
		return nil, "", q.unclear("the answer has no likes")
	}
	members := make([]likes.Member, len(p.Likes))
	for i, l := range p.Likes {
		id, err := likes.ParseID(l.ItemID)
		if err != nil {
			return nil, "", q.unclear("likes[%d].item_id is %.40q, which is no id", i, l.ItemID)
		}
		t, ok := c.types.Type(l.ItemType)
		if !ok {
			return nil, "", q.unclear("likes[%d].item_type: %.40q is newer than this client: open it again", i, l.ItemType)
		}
		edge := likes.Edge{Counter: counter, Item: likes.Item{Type: t, ID: likes.ItemID(id)}, User: user}
		members[i] = likes.Member{Edge: edge, LikedAt: l.LikedAt}
	}
	return members, p.Next, nil
}

func (c *Client) page(ctx context.Context, path string, query url.Values, counter likes.Counter, cur likes.Cursor, limit int) (page, *request, error) {
	query.Set("counter", counter.String())
	query.Set("limit", strconv.Itoa(limit))
	if cur != "" {
		query.Set("cursor", string(cur))
	}
	q := &request{method: http.MethodGet, path: path + "?" + query.Encode()}
	var p page
	_, err := c.call(ctx, *q, &p)
	return p, q, err
}
