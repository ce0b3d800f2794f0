package sqlite

import (
	"context"
	"database/sql/driver"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

// CROSS JOIN fixes the order: for each key a search in the table, never a scan
// of the table for each key.
const (
	selectRegisters statement = `SELECT k.column1, e.liked, e.clock, e.liked_at
		FROM (VALUES {(#,?,?,?,?)}) AS k CROSS JOIN edges AS e
		ON e.counter = k.column2 AND e.item_type = k.column3 AND e.item_id = k.column4 AND e.user_id = k.column5`

	selectCounts statement = `SELECT k.column1, c.count, c.version, m.epoch
		FROM likectl_meta AS m CROSS JOIN (VALUES {(#,?,?,?)}) AS k LEFT JOIN counters AS c
		ON c.counter = k.column2 AND c.item_type = k.column3 AND c.item_id = k.column4`

	selectLikers statement = `SELECT user_id, liked_at FROM edges
		WHERE counter = ? AND item_type = ? AND item_id = ? AND user_id > ? AND liked = 1
		ORDER BY user_id LIMIT ?`

	// "My likes" after an item, in two steps that each are one range of the
	// index: the rest of the item's type, then the types above it.
	selectLikedSameType statement = `SELECT item_type, item_id, liked_at FROM edges INDEXED BY edges_by_user
		WHERE user_id = ? AND counter = ? AND item_type = ? AND item_id < ? AND liked = 1
		ORDER BY item_id DESC LIMIT ?`
	selectLikedNextTypes statement = `SELECT item_type, item_id, liked_at FROM edges INDEXED BY edges_by_user
		WHERE user_id = ? AND counter = ? AND item_type > ? AND liked = 1
		ORDER BY item_type, item_id DESC LIMIT ?`
)

// Counts reads the counters in one snapshot; see [store.Edges].
func (s *Store) Counts(ctx context.Context, c likes.Counter, items []likes.Item, out []store.CountRow) error {
	return s.snapshotIfMany(ctx, "read counts", len(items), func(r *conn) error {
		keys := make([]store.Key, len(items))
		for i, item := range items {
			keys[i] = store.Key{Counter: c, Item: item}
		}
		_, err := r.counts(ctx, keys, out)
		return err
	})
}

// Registers reads the registers in one snapshot; see [store.Edges].
func (s *Store) Registers(ctx context.Context, c likes.Counter, user likes.UserID, items []likes.Item, out []likes.Register) error {
	return s.snapshotIfMany(ctx, "read registers", len(items), func(r *conn) error {
		edges := make([]likes.Edge, len(items))
		for i, item := range items {
			edges[i] = likes.Edge{Counter: c, Item: item, User: user}
		}
		return r.registers(ctx, edges, out)
	})
}

// snapshotIfMany takes a transaction only if n keys need more than one query.
func (s *Store) snapshotIfMany(ctx context.Context, op string, n int, fn func(*conn) error) error {
	if n > maxRows {
		return s.snapshot(ctx, op, fn)
	}
	return s.read(ctx, op, fn)
}

// registers reads the edges' registers; an edge without one gets the zero one.
func (c *conn) registers(ctx context.Context, edges []likes.Edge, out []likes.Register) error {
	const columns = 4
	for len(edges) > 0 {
		n := min(len(edges), maxRows)
		for _, e := range edges[:n] {
			c.bindKey(store.Key{Counter: e.Counter, Item: e.Item})
			c.bind(int64(e.User))
		}
		clear(out[:n])
		rows := padded(n)
		c.bindNulls((rows - n) * columns)
		err := c.query(ctx, selectRegisters, rows, func(v []driver.Value) {
			out[number(v[0])] = register(v[1], v[2], v[3])
		})
		if err != nil {
			return err
		}
		edges, out = edges[n:], out[n:]
	}
	return nil
}

// counts reads the counters and the epoch in which a change would be made; an
// item without a counter gets the zero row.
func (c *conn) counts(ctx context.Context, keys []store.Key, out []store.CountRow) (likes.Epoch, error) {
	const columns = 3
	var epoch likes.Epoch
	for len(keys) > 0 {
		n := min(len(keys), maxRows)
		for _, k := range keys[:n] {
			c.bindKey(k)
		}
		clear(out[:n])
		rows := padded(n)
		c.bindNulls((rows - n) * columns)
		err := c.query(ctx, selectCounts, rows, func(v []driver.Value) {
			epoch = likes.Epoch(number(v[3]))
			if v[1] != nil {
				version := likes.CountVersion{Epoch: epoch, N: number(v[2])}
				out[number(v[0])] = store.CountRow{N: number(v[1]), Version: version}
			}
		})
		if err != nil {
			return 0, err
		}
		keys, out = keys[n:], out[n:]
	}
	return epoch, nil
}

// Likers pages through an item's likers; see [store.Edges].
func (s *Store) Likers(ctx context.Context, c likes.Counter, item likes.Item, after likes.UserID, limit int) ([]likes.Member, error) {
	var page []likes.Member
	err := s.read(ctx, "read likers", func(r *conn) error {
		r.bindKey(store.Key{Counter: c, Item: item})
		r.bind(int64(after), int64(limit))
		return r.query(ctx, selectLikers, 1, func(v []driver.Value) {
			edge := likes.Edge{Counter: c, Item: item, User: likes.UserID(number(v[0]))}
			page = append(page, likes.Member{Edge: edge, LikedAt: instant(v[1])})
		})
	})
	return page, err
}

// LikedBy pages through a user's likes; see [store.Edges].
func (s *Store) LikedBy(ctx context.Context, c likes.Counter, user likes.UserID, after likes.Item, limit int) ([]likes.Member, error) {
	var page []likes.Member
	add := func(v []driver.Value) {
		item := likes.Item{Type: likes.ItemType(number(v[0])), ID: likes.ItemID(number(v[1]))}
		edge := likes.Edge{Counter: c, Item: item, User: user}
		page = append(page, likes.Member{Edge: edge, LikedAt: instant(v[2])})
	}
	err := s.read(ctx, "read liked items", func(r *conn) error {
		if after != (likes.Item{}) {
			r.bind(int64(user), int64(c), int64(after.Type), int64(after.ID), int64(limit))
			if err := r.query(ctx, selectLikedSameType, 1, add); err != nil {
				return err
			}
		}
		rest := limit - len(page)
		if rest <= 0 {
			return nil
		}
		r.bind(int64(user), int64(c), int64(after.Type), int64(rest))
		return r.query(ctx, selectLikedNextTypes, 1, add)
	})
	return page, err
}
