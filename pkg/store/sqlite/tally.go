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
	insertEvents statement = `INSERT INTO tally_events (counter, item_type, item_id, event_id, at)
		VALUES {(?,?,?,?,?)}
		ON CONFLICT DO NOTHING RETURNING counter, item_type, item_id, event_id`

	// The rows of a table without row ids are named by their keys.
	deleteEvents statement = `DELETE FROM tally_events WHERE (event_id, counter, item_type, item_id) IN (
			SELECT event_id, counter, item_type, item_id FROM tally_events INDEXED BY tally_events_by_age
			WHERE at < ? ORDER BY at LIMIT ?)
		RETURNING 1`
)

// Add counts the events in one transaction; see [store.Tallies].
func (s *Store) Add(ctx context.Context, adds []store.Add, out []store.Added) error {
	if len(adds) == 0 {
		return nil
	}
	return s.write(ctx, "add events", func(ctx context.Context, w *conn) error {
		clear(out[:len(adds)])
		if err := w.insertEvents(ctx, adds, out); err != nil {
			return err
		}
		return s.batch.tally(ctx, w, adds, out)
	})
}

// insertEvents remembers the events and says of each whether it is new.
func (c *conn) insertEvents(ctx context.Context, adds []store.Add, out []store.Added) error {
	for from := 0; from < len(adds); {
		n := chunk(len(adds) - from)
		for i := range adds[from : from+n] {
			a := &adds[from+i]
			c.bindKey(a.Key)
			c.bindBytes(a.Event[:])
			c.bind(a.At.UnixMicro())
		}
		err := c.query(ctx, insertEvents, n, func(v []driver.Value) {
			of := store.Add{Key: keyOf(v)}
			event, _ := v[3].([]byte)
			copy(of.Event[:], event)
			i, _ := slices.BinarySearchFunc(adds, of, store.Add.Compare)
			out[i].New = true
		})
		if err != nil {
			return err
		}
		from += n
	}
	return nil
}

// tally moves the counters of the items with new events and answers all adds
// with their item's count.
func (b *batch) tally(ctx context.Context, w *conn, adds []store.Add, out []store.Added) error {
	b.items, b.keys, b.count = b.items[:0], b.keys[:0], b.count[:0]
	for i := range adds {
		if i == 0 || adds[i].Key != adds[i-1].Key {
			b.items = append(b.items, itemRow{Key: adds[i].Key, first: i})
			b.keys, b.count = append(b.keys, adds[i].Key), append(b.count, store.CountRow{})
		}
		item := &b.items[len(b.items)-1]
		item.end = i + 1
		item.delta += number01(out[i].New)
	}
	epoch, err := w.counts(ctx, b.keys, b.count)
	if err != nil {
		return err
	}
	changed := b.move(epoch, func(item itemRow, row store.CountRow) {
		for i := item.first; i < item.end; i++ {
			out[i].Count, out[i].Version = row.N, row.Version
		}
	})
	return w.storeCounters(ctx, b.keys[:changed], b.count[:changed])
}

// Forget removes old events; see [store.Tallies]. Writers wait meanwhile.
func (s *Store) Forget(ctx context.Context, before time.Time, limit int) (int, error) {
	n := 0
	err := s.write(ctx, "forget events", func(ctx context.Context, w *conn) error {
		w.bind(before.UnixMicro(), int64(limit))
		return w.query(ctx, deleteEvents, 1, func([]driver.Value) { n++ })
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// keyOf reads a key from the first three columns.
func keyOf(v []driver.Value) store.Key {
	item := likes.Item{Type: likes.ItemType(number(v[1])), ID: likes.ItemID(number(v[2]))}
	return store.Key{Counter: likes.Counter(number(v[0])), Item: item}
}
