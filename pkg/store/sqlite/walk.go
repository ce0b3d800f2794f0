package sqlite

import (
	"context"
	"database/sql/driver"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

const (
	// selectWalk reads edges that were taken back too: see [store.Walker].
	selectWalk statement = `SELECT counter, item_type, item_id, user_id, liked_at, liked FROM edges
		WHERE (counter, item_type, item_id, user_id) > (?, ?, ?, ?)
		ORDER BY counter, item_type, item_id, user_id LIMIT ?`

	sumCounters statement = `SELECT sum(count) FROM counters WHERE ? IN (0, counter)`
)

// WalkEdges implements [store.Walker] with one range of the primary key.
func (s *Store) WalkEdges(ctx context.Context, after likes.Edge, limit int) (store.EdgePage, error) {
	if err := store.CheckWalk(limit); err != nil {
		return store.EdgePage{}, err
	}
	var page store.EdgePage
	var last likes.Edge
	seen := 0
	err := s.read(ctx, "walk over the edges", func(r *conn) error {
		r.bindKey(store.Key{Counter: after.Counter, Item: after.Item})
		r.bind(int64(after.User), int64(limit))
		return r.query(ctx, selectWalk, 1, func(v []driver.Value) {
			seen++
			last = likes.Edge{
				Counter: likes.Counter(number(v[0])), User: likes.UserID(number(v[3])),
				Item: likes.Item{Type: likes.ItemType(number(v[1])), ID: likes.ItemID(number(v[2]))},
			}
			if number(v[5]) == 1 {
				page.Members = append(page.Members, likes.Member{Edge: last, LikedAt: instant(v[4])})
			}
		})
	})
	if err != nil {
		return store.EdgePage{}, err
	}
	if seen == limit {
		page.Next = last
	}
	return page, nil
}

// EstimateEdges adds up the counters, which equal their edges; see
// [store.Walker].
func (s *Store) EstimateEdges(ctx context.Context, c likes.Counter) (int64, error) {
	var n int64
	err := s.read(ctx, "add up the counters", func(r *conn) error {
		r.bind(int64(c))
		return r.query(ctx, sumCounters, 1, func(v []driver.Value) { n = number(v[0]) })
	})
	return n, err
}
