package sqlite

import (
	"context"
	"database/sql/driver"

	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/visibility"
)

const (
	selectItem statement = `SELECT owner_id, level, state, hide_counts FROM items WHERE item_type = ? AND item_id = ?`

	upsertItem statement = `INSERT INTO items (item_type, item_id, owner_id, level, state, hide_counts) VALUES (?,?,?,?,?,?)
		ON CONFLICT DO UPDATE SET owner_id = excluded.owner_id, level = excluded.level, state = excluded.state,
			hide_counts = excluded.hide_counts`

	insertBlock     statement = "INSERT INTO blocks (blocker_id, blocked_id) VALUES (?,?) ON CONFLICT DO NOTHING RETURNING 1"
	deleteBlock     statement = "DELETE FROM blocks WHERE blocker_id = ? AND blocked_id = ? RETURNING 1"
	insertItemBlock statement = `INSERT INTO item_blocks (item_type, item_id, blocked_id) VALUES (?,?,?)
		ON CONFLICT DO NOTHING RETURNING 1`
	deleteItemBlock statement = "DELETE FROM item_blocks WHERE item_type = ? AND item_id = ? AND blocked_id = ? RETURNING 1"
	insertFollow    statement = "INSERT INTO follows (follower_id, followee_id) VALUES (?,?) ON CONFLICT DO NOTHING RETURNING 1"
	deleteFollow    statement = "DELETE FROM follows WHERE follower_id = ? AND followee_id = ? RETURNING 1"
)

const (
	// Five searches for every item, whether it has a row or not and whatever the
	// others find: how long it takes must not tell what may not be told.
	selectFacts statement = `SELECT k.column1, i.owner_id, i.level, i.state, i.hide_counts,
			(SELECT count(*) FROM follows WHERE follower_id = v.id AND followee_id = coalesce(i.owner_id, 0)),
			(SELECT count(*) FROM item_blocks WHERE item_type = k.column2 AND item_id = k.column3 AND blocked_id = v.id)
			+ (SELECT count(*) FROM blocks WHERE blocker_id = coalesce(i.owner_id, 0) AND blocked_id = v.id)
			+ (SELECT count(*) FROM blocks WHERE blocker_id = v.id AND blocked_id = coalesce(i.owner_id, 0))
		FROM (SELECT ? AS id) AS v CROSS JOIN (VALUES {(#,?,?)}) AS k
		LEFT JOIN items AS i ON i.item_type = k.column2 AND i.item_id = k.column3`

	selectRestricts statement = "SELECT EXISTS (SELECT 1 FROM items) OR EXISTS (SELECT 1 FROM item_blocks)"

	selectBlocked statement = `SELECT k.column1,
			(SELECT count(*) FROM blocks WHERE blocker_id = v.id AND blocked_id = k.column2)
			+ (SELECT count(*) FROM blocks WHERE blocker_id = k.column2 AND blocked_id = v.id)
		FROM (SELECT ? AS id) AS v CROSS JOIN (VALUES {(#,?)}) AS k`

	// State 1 is live.
	selectGiven statement = `SELECT e.counter, count(*) FROM edges AS e INDEXED BY edges_by_user
		LEFT JOIN items AS i ON i.item_type = e.item_type AND i.item_id = e.item_id
		WHERE e.user_id = ? AND e.liked = 1 AND coalesce(i.state, 1) = 1 GROUP BY e.counter`

	// One counter, so that nothing has to be sorted into groups.
	selectReceived statement = `SELECT sum(c.count * (1 - i.hide_counts)), sum(c.count * i.hide_counts)
		FROM items AS i INDEXED BY items_by_owner
		CROSS JOIN counters AS c ON c.counter = ? AND c.item_type = i.item_type AND c.item_id = i.item_id
		WHERE i.owner_id = ? AND i.owner_id > 0 AND i.state = 1`
)

// PutItem reads the row and writes what becomes of it; see [store.Catalog].
func (s *Store) PutItem(ctx context.Context, c store.ItemChange) (now visibility.Item, changed bool, err error) {
	if err := c.Validate(); err != nil {
		return visibility.Item{}, false, err
	}
	err = s.write(ctx, "put an item", func(ctx context.Context, w *conn) error {
		var was visibility.Item
		w.bindItem(c.Item)
		err := w.query(ctx, selectItem, 1, func(v []driver.Value) {
			was = visibility.Item{
				Item: c.Item, Owner: likes.UserID(number(v[0])), Level: level(v[1]), State: state(v[2]), HideCounts: number(v[3]) != 0,
			}
		})
		now = c.Over(was)
		changed = now != was
		if err != nil || !changed {
			return err
		}
		w.bindItem(now.Item)
		w.bind(int64(now.Owner), int64(now.Level), int64(now.State), number01(now.HideCounts))
		return w.exec(ctx, upsertItem, 1)
	})
	if err != nil {
		return visibility.Item{}, false, err
	}
	return now, changed, nil
}

// PutBlock implements [store.Catalog].
func (s *Store) PutBlock(ctx context.Context, b store.Block, on bool) (bool, error) {
	if err := b.Validate(); err != nil {
		return false, err
	}
	if b.Blocker > 0 {
		return s.put(ctx, "put a block", choose(on, insertBlock, deleteBlock), int64(b.Blocker), int64(b.Blocked))
	}
	return s.put(ctx, "put a block of an item", choose(on, insertItemBlock, deleteItemBlock),
		int64(b.Item.Type), int64(b.Item.ID), int64(b.Blocked))
}

// PutFollow implements [store.Catalog].
func (s *Store) PutFollow(ctx context.Context, f store.Follow, on bool) (bool, error) {
	if err := f.Validate(); err != nil {
		return false, err
	}
	return s.put(ctx, "put a follow", choose(on, insertFollow, deleteFollow), int64(f.Follower), int64(f.Followee))
}

func choose(on bool, put, remove statement) statement {
	if on {
		return put
	}
	return remove
}

// put runs a statement that returns a row if it changed anything.
func (s *Store) put(ctx context.Context, op string, stmt statement, key ...int64) (bool, error) {
	changed := false
	err := s.write(ctx, op, func(ctx context.Context, w *conn) error {
		w.bind(key...)
		return w.query(ctx, stmt, 1, func([]driver.Value) { changed = true })
	})
	return changed && err == nil, err
}

// Facts implements [store.Catalog] with one query.
func (s *Store) Facts(ctx context.Context, viewer likes.UserID, items []likes.Item, out []visibility.Facts) error {
	if err := store.CheckFacts(viewer, items); err != nil || len(items) == 0 {
		return err
	}
	const columns = 2
	out = out[:len(items)]
	return s.read(ctx, "read facts about items", func(r *conn) error {
		r.bind(int64(viewer))
		for _, item := range items {
			r.bindItem(item)
		}
		rows := padded(len(items))
		r.bindNulls((rows - len(items)) * columns)
		return r.query(ctx, selectFacts, rows, func(v []driver.Value) {
			n := number(v[0])
			if n >= int64(len(out)) {
				return
			}
			out[n] = visibility.Facts{
				Known: v[1] != nil, Owner: likes.UserID(number(v[1])), Level: level(v[2]), State: state(v[3]),
				HideCounts: number(v[4]) != 0, Follows: number(v[5]) != 0, Blocked: number(v[6]) != 0,
			}
		})
	})
}

// Restricts implements [store.Catalog].
func (s *Store) Restricts(ctx context.Context) (any bool, err error) {
	err = s.read(ctx, "look for restrictions", func(r *conn) error {
		return r.query(ctx, selectRestricts, 1, func(v []driver.Value) { any = number(v[0]) != 0 })
	})
	return any, err
}

// Blocked implements [store.Catalog] with one query.
func (s *Store) Blocked(ctx context.Context, viewer likes.UserID, users []likes.UserID, out []bool) error {
	if err := store.CheckBlocked(viewer, users); err != nil || len(users) == 0 {
		return err
	}
	out = out[:len(users)]
	return s.read(ctx, "read blocks of users", func(r *conn) error {
		r.bind(int64(viewer))
		for _, user := range users {
			r.bind(int64(user))
		}
		rows := padded(len(users))
		r.bindNulls(rows - len(users))
		return r.query(ctx, selectBlocked, rows, func(v []driver.Value) {
			if n := number(v[0]); n < int64(len(out)) {
				out[n] = number(v[1]) != 0
			}
		})
	})
}

// Totals implements [store.Catalog]. It reads all that the user likes and owns, so
// it takes longer the more that is.
func (s *Store) Totals(ctx context.Context, user likes.UserID) (store.Totals, error) {
	if err := likes.CheckUser(user); err != nil {
		return store.Totals{}, err
	}
	t := store.NewTotals()
	err := s.snapshot(ctx, "add up a user's totals", func(r *conn) error {
		r.bind(int64(user))
		err := r.query(ctx, selectGiven, 1, func(v []driver.Value) { t.Given[likes.Counter(number(v[0]))] = number(v[1]) })
		if err != nil {
			return err
		}
		for _, c := range likes.Counters() {
			r.bind(int64(c), int64(user))
			err := r.query(ctx, selectReceived, 1, func(v []driver.Value) {
				if n := number(v[0]); n != 0 {
					t.Received[c] = n
				}
				if n := number(v[1]); n != 0 {
					t.ReceivedHidden[c] = n
				}
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return store.Totals{}, err
	}
	return t, nil
}

func (c *conn) bindItem(i likes.Item) { c.bind(int64(i.Type), int64(i.ID)) }

func level(v driver.Value) visibility.Level { return visibility.Level(number(v)) } //nolint:gosec // as it was stored
func state(v driver.Value) visibility.State { return visibility.State(number(v)) } //nolint:gosec // as it was stored
