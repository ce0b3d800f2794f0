package sqlite

import (
	"context"
	"database/sql/driver"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

// Both pages follow the primary keys: an item's edges lie together, so grouping
// needs no sort and stops after limit items. The page of counters is of one
// counter, since tallies lie between the sets.
const (
	selectCounterPage statement = `SELECT counter, item_type, item_id, count FROM counters
		WHERE counter = ? AND (item_type, item_id) > (?, ?)
		ORDER BY item_type, item_id LIMIT ?`
	selectEdgePage statement = `SELECT counter, item_type, item_id, sum(liked) FROM edges
		WHERE (counter, item_type, item_id) > (?, ?, ?)
		GROUP BY counter, item_type, item_id
		ORDER BY counter, item_type, item_id LIMIT ?`

	selectDrift statement = `SELECT c.count, c.version, (SELECT count(*) FROM edges AS e
			WHERE e.counter = k.column1 AND e.item_type = k.column2 AND e.item_id = k.column3 AND e.liked = 1)
		FROM (VALUES (?,?,?)) AS k LEFT JOIN counters AS c
		ON c.counter = k.column1 AND c.item_type = k.column2 AND c.item_id = k.column3`

	countCounters statement = `SELECT count(*) FROM counters WHERE counter = ?`
)

// keyed is one side of the comparison for one key.
type keyed struct {
	store.Key
	n int64
}

// Audit compares the next counters in one snapshot; see [store.Auditor].
// Writers do not wait for it.
func (s *Store) Audit(ctx context.Context, after store.Key, limit int) (store.Audit, error) {
	var stored, counted []keyed
	err := s.snapshot(ctx, "audit counters", func(r *conn) error {
		for _, c := range likes.SetCounters() {
			from := store.Key{Counter: c}
			switch {
			case c < after.Counter || len(stored) == limit:
				continue
			case c == after.Counter:
				from = after
			}
			page, err := r.side(ctx, selectCounterPage, from, limit-len(stored))
			if err != nil {
				return err
			}
			stored = append(stored, page...)
		}
		var err error
		counted, err = r.side(ctx, selectEdgePage, after, limit)
		return err
	})
	if err != nil {
		return store.Audit{}, err
	}
	return merge(stored, counted, limit), nil
}

// side reads one page of keys with a number each.
func (c *conn) side(ctx context.Context, page statement, after store.Key, limit int) ([]keyed, error) {
	var all []keyed
	c.bindKey(after)
	c.bind(int64(limit))
	err := c.query(ctx, page, 1, func(v []driver.Value) {
		all = append(all, keyed{keyOf(v), number(v[3])})
	})
	return all, err
}

// merge walks both pages in key order, up to limit keys. Each page holds its
// side's first limit keys, so up to that many no key is missing from either.
func merge(stored, counted []keyed, limit int) store.Audit {
	var a store.Audit
	for a.Checked < limit && len(stored)+len(counted) > 0 {
		var d store.Drift
		order := compareHeads(stored, counted)
		if order <= 0 {
			d.Key, d.Stored = stored[0].Key, stored[0].n
			stored = stored[1:]
		}
		if order >= 0 {
			d.Key, d.Edges = counted[0].Key, counted[0].n
			counted = counted[1:]
		}
		d.Missing = order > 0
		add(&a, d)
		a.Next = d.Key
	}
	if a.Checked < limit {
		a.Next = store.Key{}
	}
	return a
}

// compareHeads says which of two lists, not both empty, has the lower first key.
func compareHeads(a, b []keyed) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	return a[0].Compare(b[0].Key)
}

// add counts a comparison and keeps it if it found a drift. An item of which
// only tombstones are left has no counter and needs none.
func add(a *store.Audit, d store.Drift) {
	a.Checked++
	if d.Stored != d.Edges {
		a.Drifts = append(a.Drifts, d)
	}
}

// AuditItem compares the given counters in one snapshot; see [store.Auditor].
func (s *Store) AuditItem(ctx context.Context, keys []store.Key) (store.Audit, error) {
	if err := store.CheckAudit(keys...); err != nil {
		return store.Audit{}, err
	}
	var a store.Audit
	err := s.snapshot(ctx, "audit counters", func(r *conn) error {
		for _, k := range keys {
			d, _, err := r.drift(ctx, k)
			if err != nil {
				return err
			}
			if !d.Missing || d.Edges > 0 {
				add(&a, d)
			}
		}
		return nil
	})
	if err != nil {
		return store.Audit{}, err
	}
	return a, nil
}

// drift compares one counter with its edges, and returns its row too.
func (c *conn) drift(ctx context.Context, k store.Key) (store.Drift, store.CountRow, error) {
	d := store.Drift{Key: k}
	var row store.CountRow
	c.bindKey(k)
	err := c.query(ctx, selectDrift, 1, func(v []driver.Value) {
		d.Missing = v[0] == nil
		d.Stored, d.Edges = number(v[0]), number(v[2])
		row.N, row.Version.N = d.Stored, number(v[1])
	})
	return d, row, err
}

// Repair adds the counter's drift to it; see [store.Auditor]. It measures and
// adds in one transaction of the only writer, so repairs and writes take turns
// by themselves; writers wait while the item's edges are counted (about 0.1 s
// per million).
func (s *Store) Repair(ctx context.Context, k store.Key) (store.Drift, error) {
	if err := store.CheckAudit(k); err != nil {
		return store.Drift{}, err
	}
	var d store.Drift
	err := s.write(ctx, "repair counter", func(ctx context.Context, w *conn) error {
		var row store.CountRow
		var err error
		if d, row, err = w.drift(ctx, k); err != nil || d.Stored == d.Edges {
			return err
		}
		row.N = d.Edges
		row.Version.N++
		return w.storeCounters(ctx, []store.Key{k}, []store.CountRow{row})
	})
	if err != nil {
		return store.Drift{}, err
	}
	return d, nil
}

// Estimate counts the counters; see [store.Auditor].
func (s *Store) Estimate(ctx context.Context) (int64, error) {
	var n int64
	err := s.read(ctx, "count counters", func(r *conn) error {
		for _, c := range likes.SetCounters() {
			r.bind(int64(c))
			if err := r.query(ctx, countCounters, 1, func(v []driver.Value) { n += number(v[0]) }); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}
