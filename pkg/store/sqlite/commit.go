package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/userhash"
)

const (
	upsertEdges statement = `INSERT INTO edges (counter, item_type, item_id, user_id, clock, liked_at, liked)
		VALUES {(?,?,?,?,?,?,?)}
		ON CONFLICT DO UPDATE SET clock = excluded.clock, liked_at = excluded.liked_at, liked = excluded.liked`

	upsertCounters statement = `INSERT INTO counters (counter, item_type, item_id, count, version)
		VALUES {(?,?,?,?,?)}
		ON CONFLICT DO UPDATE SET count = excluded.count, version = excluded.version`
)

// batch is what one commit keeps in memory; its slices are used again.
type batch struct {
	edges []likes.Edge
	// old holds the registers as they were.
	old []likes.Register
	// hashes are those of the users, erased says who of them is erased.
	hashes []store.UserHash
	erased []bool
	rows   []edgeRow
	items  []itemRow
	keys   []store.Key
	count  []store.CountRow
}

// edgeRow is a register to store.
type edgeRow struct {
	edge likes.Edge
	likes.Register
}

// itemRow is one item of the batch: its writes are out[first:end].
type itemRow struct {
	store.Key
	first, end int
	delta      int64
}

// Commit applies the batch in one transaction; see [store.Edges]. It reads
// before it writes, which is safe because no other transaction can write in
// between.
func (s *Store) Commit(ctx context.Context, c store.Commit, out []store.Written) error {
	if len(c.Writes) == 0 {
		return nil
	}
	return s.write(ctx, "commit likes", func(ctx context.Context, w *conn) error {
		return s.batch.commit(ctx, w, s.hashKey, s.floors, c, out)
	})
}

func (b *batch) commit(ctx context.Context, w *conn, key userhash.Key, f floors, c store.Commit, out []store.Written) error {
	b.edges, b.old = b.edges[:0], b.old[:0]
	for _, write := range c.Writes {
		b.edges = append(b.edges, write.Edge)
		b.old = append(b.old, likes.Register{})
	}
	if err := w.registers(ctx, b.edges, b.old); err != nil {
		return err
	}
	if err := b.findErased(ctx, w, key, f); err != nil {
		return err
	}
	b.decide(c, out)
	if err := w.storeEdges(ctx, b.rows); err != nil {
		return err
	}
	return b.settle(ctx, w, c.Replay, out)
}

// decide applies the rule to every write and sums up the items' deltas.
func (b *batch) decide(c store.Commit, out []store.Written) {
	b.rows, b.items = b.rows[:0], b.items[:0]
	for i, write := range c.Writes {
		old := b.old[i]
		next, applied := write.Over(old, c.Replay)
		key := store.Key{Counter: write.Edge.Counter, Item: write.Edge.Item}
		if len(b.items) == 0 || b.items[len(b.items)-1].Key != key {
			b.items = append(b.items, itemRow{Key: key, first: i})
		}
		item := &b.items[len(b.items)-1]
		item.end = i + 1
		if !applied || b.erased[i] {
			out[i] = store.Written{Erased: b.erased[i]}
			continue
		}
		out[i] = store.Written{Applied: true, Was: old.Liked, Clock: next.Clock}
		item.delta += number01(next.Liked) - number01(old.Liked)
		b.rows = append(b.rows, edgeRow{write.Edge, next})
	}
}

// settle moves the counters of the items whose edges changed and answers issued
// writes with their item's count. A replay asks for no count, so items that did
// not change are not even read.
func (b *batch) settle(ctx context.Context, w *conn, replay bool, out []store.Written) error {
	if replay {
		n := 0
		for _, item := range b.items {
			if item.delta != 0 {
				b.items[n] = item
				n++
			}
		}
		b.items = b.items[:n]
	}
	b.keys, b.count = b.keys[:0], b.count[:0]
	for _, item := range b.items {
		b.keys = append(b.keys, item.Key)
		b.count = append(b.count, store.CountRow{})
	}
	epoch, err := w.counts(ctx, b.keys, b.count)
	if err != nil {
		return err
	}
	changed := b.move(epoch, func(item itemRow, row store.CountRow) {
		if replay {
			return
		}
		for j := item.first; j < item.end; j++ {
			if out[j].Applied {
				out[j].Count, out[j].Version = row.N, row.Version
			}
		}
	})
	return w.storeCounters(ctx, b.keys[:changed], b.count[:changed])
}

// move adds the items' deltas to their counters, which have been read, tells
// every item's counter as it is then, and returns how many have changed: they
// are the first of keys and count.
func (b *batch) move(epoch likes.Epoch, tell func(itemRow, store.CountRow)) (changed int) {
	for i, item := range b.items {
		row := b.count[i]
		if item.delta != 0 {
			row.N += item.delta
			row.Version = likes.CountVersion{Epoch: epoch, N: row.Version.N + 1}
			b.keys[changed], b.count[changed] = item.Key, row
			changed++
		}
		tell(item, row)
	}
	return changed
}

// storeEdges writes the registers, many rows per statement.
func (c *conn) storeEdges(ctx context.Context, rows []edgeRow) error {
	for len(rows) > 0 {
		n := chunk(len(rows))
		for _, r := range rows[:n] {
			c.bindKey(store.Key{Counter: r.edge.Counter, Item: r.edge.Item})
			c.bind(int64(r.edge.User), int64(r.Clock), r.LikedAt.UnixMicro(), number01(r.Liked))
		}
		if err := c.exec(ctx, upsertEdges, n); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// storeCounters writes the counters, many rows per statement.
func (c *conn) storeCounters(ctx context.Context, keys []store.Key, rows []store.CountRow) error {
	for len(keys) > 0 {
		n := chunk(len(keys))
		for i, k := range keys[:n] {
			c.bindKey(k)
			c.bind(rows[i].N, rows[i].Version.N)
		}
		if err := c.exec(ctx, upsertCounters, n); err != nil {
			return err
		}
		keys, rows = keys[n:], rows[n:]
	}
	return nil
}

func (c *conn) bindKey(k store.Key) {
	c.bind(int64(k.Counter), int64(k.Item.Type), int64(k.Item.ID))
}

// register reads a register from three columns.
func register(liked, clock, likedAt driver.Value) likes.Register {
	return likes.Register{
		Liked:   number(liked) != 0,
		Clock:   likes.Clock(number(clock)),
		LikedAt: instant(likedAt),
	}
}

func instant(micros driver.Value) time.Time { return time.UnixMicro(number(micros)).UTC() }

func number01(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
