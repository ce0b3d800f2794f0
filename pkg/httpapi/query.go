package httpapi

import (
	"net/url"
	"strings"

	"likectl/pkg/likes"
)

// query is a query string with the parameters that a route has, each at most
// once. Unknown ones are refused: a misspelt counter would be a wrong answer.
type query struct {
	names  []string
	values [maxParams]string
	given  [maxParams]bool
}

const maxParams = 7

// parseQuery reads the query string for a route's parameters.
func parseQuery(raw string, names ...string) (query, error) {
	q := query{names: names}
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, err := unescape(name)
		if err != nil {
			return q, likes.Errorf(likes.ErrInvalid, "query: %w", err)
		}
		i := q.index(name)
		if i < 0 {
			return q, likes.Errorf(likes.ErrInvalid, "query: parameter %q is unknown, want %s", clip([]byte(name)), strings.Join(names, ", "))
		}
		if q.given[i] {
			return q, likes.Errorf(likes.ErrInvalid, "%s: given twice", name)
		}
		if value, err = unescape(value); err != nil {
			return q, likes.Errorf(likes.ErrInvalid, "%s: %w", name, err)
		}
		q.values[i], q.given[i] = value, true
	}
	return q, nil
}

func unescape(s string) (string, error) {
	if !strings.ContainsAny(s, "%+") {
		return s, nil
	}
	return url.QueryUnescape(s)
}

func (q *query) index(name string) int {
	for i, n := range q.names {
		if n == name {
			return i
		}
	}
	return -1
}

// get returns a parameter of the route and whether it was given.
func (q *query) get(name string) (string, bool) {
	i := q.index(name)
	return q.values[i], q.given[i]
}

// id returns a parameter that is an id, 0 if it was not given and need not be.
func (q *query) id(name string, required bool) (int64, error) {
	s, ok := q.get(name)
	switch {
	case !ok && required:
		return 0, likes.Errorf(likes.ErrInvalid, "%s: missing", name)
	case !ok:
		return 0, nil
	}
	id, err := likes.ParseID(s)
	if err != nil {
		return 0, likes.Errorf(likes.ErrInvalid, "%s: %w", name, err)
	}
	return id, nil
}

// wantType says where the item types are listed: there can be any number.
const wantType = "want one of x-likectl-item-types in GET /openapi.json"

// itemType returns the parameter item_type, or type, its short name.
func (q *query) itemType(types *likes.ItemTypes) (likes.ItemType, error) {
	name, long := q.get("item_type")
	short, also := q.get("type")
	switch {
	case long && also:
		return 0, likes.Errorf(likes.ErrInvalid, "type: is item_type, which is given too")
	case also:
		name = short
	case !long:
		return 0, likes.Errorf(likes.ErrInvalid, "item_type: missing")
	}
	t, ok := types.Type(name)
	if !ok {
		return 0, likes.Errorf(likes.ErrInvalid, "item_type: %q is unknown, "+wantType, clip([]byte(name)))
	}
	return t, nil
}

// item returns the item of item_id and item_type.
func (q *query) item(types *likes.ItemTypes) (likes.Item, error) {
	id, err := q.id("item_id", true)
	if err != nil {
		return likes.Item{}, err
	}
	t, err := q.itemType(types)
	return likes.Item{Type: t, ID: likes.ItemID(id)}, err
}

// items returns the items of item_ids, a list with commas, and item_type.
func (q *query) items(types *likes.ItemTypes) ([]likes.Item, error) {
	list, ok := q.get("item_ids")
	if !ok {
		return nil, likes.Errorf(likes.ErrInvalid, "item_ids: missing")
	}
	t, err := q.itemType(types)
	if err != nil {
		return nil, err
	}
	n := strings.Count(list, ",") + 1
	if list == "" || n > likes.MaxRead {
		return nil, likes.Errorf(likes.ErrInvalid, "item_ids: want 1 to %d ids", likes.MaxRead)
	}
	items := make([]likes.Item, 0, n)
	for s := range strings.SplitSeq(list, ",") {
		id, err := likes.ParseID(s)
		if err != nil {
			return nil, likes.Errorf(likes.ErrInvalid, "item_ids[%d]: %w", len(items), err)
		}
		items = append(items, likes.Item{Type: t, ID: likes.ItemID(id)})
	}
	return items, nil
}

// page returns the parameters cursor and limit.
func (q *query) page() (likes.Cursor, int, error) {
	limit, err := q.id("limit", false)
	switch {
	case err != nil || limit > likes.MaxPage:
		return "", 0, likes.Errorf(likes.ErrInvalid, "limit: want 1 to %d", likes.MaxPage)
	case limit == 0:
		limit = defaultPage
	}
	cur, _ := q.get("cursor")
	if len(cur) > maxCursor {
		return "", 0, likes.Errorf(likes.ErrInvalid, "cursor: longer than %d characters", maxCursor)
	}
	return likes.Cursor(cur), int(limit), nil
}

// counter returns the parameter counter, a set, likes if it was not given.
func (q *query) counter() (likes.Counter, error) {
	s, ok := q.get("counter")
	if !ok {
		return likes.Likes, nil
	}
	c, err := likes.ParseSetCounter(clip([]byte(s)))
	if err != nil {
		return 0, likes.Errorf(likes.ErrInvalid, "counter: %w", err)
	}
	return c, nil
}

// counters returns the parameter counter_types, a list with commas; none if it
// was not given.
func (q *query) counters() ([]likes.Counter, error) {
	s, ok := q.get("counter_types")
	if !ok {
		return nil, nil
	}
	var cs []likes.Counter
	for name := range strings.SplitSeq(s, ",") {
		if len(cs) == maxCounterTypes {
			return nil, likes.Errorf(likes.ErrInvalid, "counter_types: more than %d entries", maxCounterTypes)
		}
		c, err := likes.ParseCounter(clip([]byte(name)))
		if err != nil {
			return nil, likes.Errorf(likes.ErrInvalid, "counter_types[%d]: %w", len(cs), err)
		}
		cs = append(cs, c)
	}
	return cs, nil
}

// viewer returns through whose eyes the call sees, with the parameter user_id.
func (q *query) viewer(c *call) (likes.UserID, error) {
	named, err := q.id("user_id", false)
	if err != nil {
		return 0, err
	}
	return c.viewer(likes.UserID(named))
}
