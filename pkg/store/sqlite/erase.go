package sqlite

import (
	"context"
	"database/sql/driver"
	"slices"
	"time"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

const (
	selectEdgesOf statement = `SELECT counter, item_type, item_id, liked, clock, liked_at FROM edges INDEXED BY edges_by_user
		WHERE user_id = ? LIMIT ?`
	deleteEdges statement = `DELETE FROM edges WHERE (counter, item_type, item_id, user_id) IN (VALUES {(?,?,?,?)})`

	addToErasure statement = `UPDATE erasures SET edges = edges + ?, tombstones = tombstones + ?, relations = relations + ?
		WHERE user_hash = ?`
	finishErasure statement = `UPDATE erasures SET finished_at = ?, user_id = NULL, into_id = NULL WHERE user_hash = ?`

	truncateWAL statement = "PRAGMA wal_checkpoint(TRUNCATE)"
)

// relation is a table whose rows name a user.
type relation struct {
	// take removes up to so many rows of a user and returns them.
	take statement
	// put adds a row, unless it is there.
	put statement
	// user is the column of what take returns that names the user, pair the one
	// that names another, or -1.
	user, pair int
}

func relations() []relation {
	const (
		putBlock     statement = "INSERT INTO blocks (blocker_id, blocked_id) VALUES (?,?) ON CONFLICT DO NOTHING"
		putItemBlock statement = "INSERT INTO item_blocks (item_type, item_id, blocked_id) VALUES (?,?,?) ON CONFLICT DO NOTHING"
		putFollow    statement = "INSERT INTO follows (follower_id, followee_id) VALUES (?,?) ON CONFLICT DO NOTHING"
	)
	return []relation{
		{take: `DELETE FROM blocks WHERE (blocker_id, blocked_id) IN (
			SELECT blocker_id, blocked_id FROM blocks WHERE blocker_id = ? LIMIT ?) RETURNING blocker_id, blocked_id`, put: putBlock, user: 0, pair: 1},
		{take: `DELETE FROM blocks WHERE (blocker_id, blocked_id) IN (
			SELECT blocker_id, blocked_id FROM blocks WHERE blocked_id = ? LIMIT ?) RETURNING blocker_id, blocked_id`, put: putBlock, user: 1, pair: 0},
		{take: `DELETE FROM item_blocks WHERE (item_type, item_id, blocked_id) IN (
			SELECT item_type, item_id, blocked_id FROM item_blocks WHERE blocked_id = ? LIMIT ?)
			RETURNING item_type, item_id, blocked_id`, put: putItemBlock, user: 2, pair: -1},
		{take: `DELETE FROM follows WHERE (follower_id, followee_id) IN (
			SELECT follower_id, followee_id FROM follows WHERE follower_id = ? LIMIT ?) RETURNING follower_id, followee_id`, put: putFollow, user: 0, pair: 1},
		{take: `DELETE FROM follows WHERE (follower_id, followee_id) IN (
			SELECT follower_id, followee_id FROM follows WHERE followee_id = ? LIMIT ?) RETURNING follower_id, followee_id`, put: putFollow, user: 1, pair: 0},
	}
}

// giveItems changes whose some items are.
const giveItems statement = `UPDATE items SET owner_id = ? WHERE (item_type, item_id) IN (
	SELECT item_type, item_id FROM items WHERE owner_id = ? AND owner_id > 0 LIMIT ?) RETURNING 1`

// StepErase implements [store.People] in one transaction of the only writer. The
// step that finishes the last of all erasures empties the WAL too: it holds the
// pages as they were, and an idle server would keep them for as long as it runs.
func (s *Store) StepErase(ctx context.Context, user likes.UserID, limit int) (store.Erasure, error) {
	if err := store.CheckStep(limit); err != nil {
		return store.Erasure{}, err
	}
	hash := s.HashUser(user)
	var e erasureRow
	begun := true
	err := s.write(ctx, "erase a user's likes", func(ctx context.Context, w *conn) (err error) {
		if e, begun, err = w.erasure(ctx, hash); err != nil || !begun || !e.Finished.IsZero() {
			return err
		}
		done, err := s.batch.erase(ctx, w, user, e.into, limit)
		if err != nil {
			return err
		}
		e.Edges, e.Tombstones, e.Relations = e.Edges+done.Edges, e.Tombstones+done.Tombstones, e.Relations+done.Relations
		w.bind(done.Edges, done.Tombstones, done.Relations)
		w.bindBytes(hash[:])
		if err := w.exec(ctx, addToErasure, 1); err != nil || done.Edges+done.Tombstones+done.Relations >= int64(limit) {
			return err
		}
		e.Finished = time.UnixMicro(time.Now().UnixMicro()).UTC()
		w.bind(e.Finished.UnixMicro())
		w.bindBytes(hash[:])
		return w.exec(ctx, finishErasure, 1)
	})
	if err != nil {
		return store.Erasure{}, err
	}
	if !begun {
		return store.Erasure{}, store.ErrNotBegun(user)
	}
	if !e.Finished.IsZero() {
		s.emptyWAL(ctx)
	}
	return e.Erasure, nil
}

// emptyWAL moves the WAL into the database and cuts it to nothing, unless erasures
// are unfinished, whose ends will do it. The erasure stands without it: where a
// long read is in the way, a later checkpoint or the next start does the same.
func (s *Store) emptyWAL(ctx context.Context) {
	if rest, err := s.Unfinished(ctx, 1); err != nil || len(rest) > 0 {
		return
	}
	w, err := s.take(ctx, s.writer, "empty the WAL")
	if err != nil {
		return
	}
	defer func() { s.writer <- w }()
	_ = w.query(context.WithoutCancel(ctx), truncateWAL, 1, func([]driver.Value) {})
}

// erase takes up to limit rows from the user, edges first, and gives them to
// another one unless that is 0.
func (b *batch) erase(ctx context.Context, w *conn, user, into likes.UserID, limit int) (done store.Remains, err error) {
	b.edges, b.rows = b.edges[:0], b.rows[:0]
	w.bind(int64(user), int64(limit))
	err = w.query(ctx, selectEdgesOf, 1, func(v []driver.Value) {
		k := keyOf(v)
		r := edgeRow{likes.Edge{Counter: k.Counter, Item: k.Item, User: user}, register(v[3], v[4], v[5])}
		b.rows = append(b.rows, r)
		done.Edges += number01(r.Liked)
		done.Tombstones += number01(!r.Liked)
	})
	if err != nil {
		return done, err
	}
	if err := w.deleteEdges(ctx, b.rows); err != nil {
		return done, err
	}
	if err := b.give(ctx, w, into); err != nil {
		return done, err
	}
	if err := b.settle(ctx, w, true, nil); err != nil {
		return done, err
	}
	done.Relations, err = w.takeRelations(ctx, user, into, int64(limit)-done.Edges-done.Tombstones)
	return done, err
}

// give sums up what the counters lose by the edges that were taken, which are
// b.rows, and gives the edges to a user unless that is 0.
func (b *batch) give(ctx context.Context, w *conn, into likes.UserID) error {
	b.items = b.items[:0]
	for _, r := range b.rows {
		key := store.Key{Counter: r.edge.Counter, Item: r.edge.Item}
		b.items = append(b.items, itemRow{Key: key, delta: -number01(r.Liked)})
	}
	if into == 0 || len(b.rows) == 0 {
		return nil
	}
	b.old = slices.Grow(b.old[:0], len(b.rows))[:len(b.rows)]
	for i := range b.rows {
		b.rows[i].edge.User = into
		b.edges = append(b.edges, b.rows[i].edge)
	}
	if err := w.registers(ctx, b.edges, b.old); err != nil {
		return err
	}
	for i, had := range b.old {
		b.rows[i].Register = had.Union(b.rows[i].Register)
		b.items[i].delta += number01(b.rows[i].Liked) - number01(had.Liked)
	}
	return w.storeEdges(ctx, b.rows)
}

func (c *conn) deleteEdges(ctx context.Context, rows []edgeRow) error {
	for len(rows) > 0 {
		n := chunk(len(rows))
		for _, r := range rows[:n] {
			c.bindKey(store.Key{Counter: r.edge.Counter, Item: r.edge.Item})
			c.bind(int64(r.edge.User))
		}
		if err := c.exec(ctx, deleteEdges, n); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// takeRelations takes up to so many of the user's relations and returns how many.
// Given to another user, those that would relate it to itself are dropped.
func (c *conn) takeRelations(ctx context.Context, user, into likes.UserID, limit int64) (n int64, err error) {
	for _, r := range relations() {
		if n == limit {
			return n, nil
		}
		var rows [][]int64
		c.bind(int64(user), limit-n)
		err := c.query(ctx, r.take, 1, func(v []driver.Value) {
			row := make([]int64, len(v))
			for i := range v {
				row[i] = number(v[i])
			}
			row[r.user] = int64(into)
			rows = append(rows, row)
		})
		if err != nil {
			return n, err
		}
		n += int64(len(rows))
		for _, row := range rows {
			if into == 0 || r.pair >= 0 && (row[r.pair] == int64(into) || row[r.pair] == int64(user)) {
				continue
			}
			c.bind(row...)
			if err := c.exec(ctx, r.put, 1); err != nil {
				return n, err
			}
		}
	}
	if n == limit {
		return n, nil
	}
	c.bind(int64(into), int64(user), limit-n)
	err = c.query(ctx, giveItems, 1, func([]driver.Value) { n++ })
	return n, err
}
