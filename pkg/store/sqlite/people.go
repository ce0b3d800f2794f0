package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"slices"
	"time"

	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/userhash"
)

const (
	selectHashKey statement = "SELECT key FROM user_hash_key"

	selectHashes statement = "SELECT user_hash FROM erasures"
	selectErased statement = `SELECT k.column1 FROM (VALUES {(#,?)}) AS k CROSS JOIN erasures AS e ON e.user_hash = k.column2`

	insertErasure statement = `INSERT INTO erasures (user_hash, begun_at, user_id, into_id, merged) VALUES (?,?,?,nullif(?,0),?)`
	selectErasure statement = `SELECT begun_at, finished_at, merged, edges, tombstones, relations, into_id FROM erasures WHERE user_hash = ?`

	selectReceivers statement = `SELECT into_id FROM erasures INDEXED BY erasures_unfinished
		WHERE finished_at IS NULL AND into_id IS NOT NULL`
	selectUnfinished statement = `SELECT user_id FROM erasures INDEXED BY erasures_unfinished
		WHERE finished_at IS NULL ORDER BY begun_at, user_hash LIMIT ?`

	// A relation of a user to itself is one row.
	selectRemains statement = `SELECT
			(SELECT count(*) FROM edges WHERE user_id = u.column1 AND liked = 1),
			(SELECT count(*) FROM edges WHERE user_id = u.column1 AND liked = 0),
			(SELECT count(*) FROM blocks WHERE blocker_id = u.column1)
			+ (SELECT count(*) FROM blocks WHERE blocked_id = u.column1 AND blocker_id <> u.column1)
			+ (SELECT count(*) FROM item_blocks WHERE blocked_id = u.column1)
			+ (SELECT count(*) FROM follows WHERE follower_id = u.column1)
			+ (SELECT count(*) FROM follows WHERE followee_id = u.column1 AND follower_id <> u.column1)
			+ (SELECT count(*) FROM items WHERE owner_id = u.column1 AND owner_id > 0)
		FROM (VALUES (?)) AS u`
)

// HashUser implements [store.People].
func (s *Store) HashUser(user likes.UserID) store.UserHash { return s.hashKey.Hash(user) }

// floors is who may be erased: the first halves of their hashes. It holds everybody
// who is, since nobody else writes to the file, and perhaps somebody whose erasure
// could not be recorded; who is in it is looked up. That is some 20 bytes a user
// and spares the others a search in a tree, which would be a fifth of a like on a
// popular item.
type floors map[uint64]struct{}

func (f floors) add(h store.UserHash) { f[binary.LittleEndian.Uint64(h[:])] = struct{}{} }

func (f floors) mayHave(h store.UserHash) bool {
	_, there := f[binary.LittleEndian.Uint64(h[:])]
	return there
}

// loadFloors reads the key of the hashes and who is erased.
func (s *Store) loadFloors(ctx context.Context, w *conn) error {
	err := w.query(ctx, selectHashKey, 1, func(v []driver.Value) {
		key, _ := v[0].([]byte)
		copy(s.hashKey[:], key)
	})
	if err != nil {
		return err
	}
	s.floors = make(floors)
	return w.query(ctx, selectHashes, 1, func(v []driver.Value) {
		var hash store.UserHash
		bytes, _ := v[0].([]byte)
		copy(hash[:], bytes)
		s.floors.add(hash)
	})
}

// findErased finds out whose writes are not to be applied.
func (b *batch) findErased(ctx context.Context, w *conn, key userhash.Key, f floors) error {
	b.erased = slices.Grow(b.erased[:0], len(b.edges))[:len(b.edges)]
	clear(b.erased)
	if len(f) == 0 {
		return nil
	}
	b.hashes = slices.Grow(b.hashes[:0], len(b.edges))[:len(b.edges)]
	anybody := false
	for i, e := range b.edges {
		b.hashes[i] = key.Hash(e.User)
		anybody = anybody || f.mayHave(b.hashes[i])
	}
	if !anybody {
		return nil
	}
	for hashes, erased := b.hashes, b.erased; len(hashes) > 0; {
		n := min(len(hashes), maxRows)
		for i := range hashes[:n] {
			w.bindBytes(hashes[i][:])
		}
		rows := padded(n)
		w.bindNulls(rows - n)
		if err := w.query(ctx, selectErased, rows, func(v []driver.Value) { erased[number(v[0])] = true }); err != nil {
			return err
		}
		hashes, erased = hashes[n:], erased[n:]
	}
	return nil
}

// BeginErase implements [store.People]. Every write is one transaction of the
// only writer, so none is under way while this one is.
func (s *Store) BeginErase(ctx context.Context, users []likes.UserID, into likes.UserID) error {
	if err := store.CheckErase(users, into); err != nil {
		return err
	}
	var refused error
	err := s.write(ctx, "begin to erase users", func(ctx context.Context, w *conn) (err error) {
		refused, err = s.beginErase(ctx, w, users, into)
		if refused != nil {
			return refused
		}
		return err
	})
	if refused != nil {
		return refused // rolled back, and not the database's fault
	}
	return err
}

func (s *Store) beginErase(ctx context.Context, w *conn, users []likes.UserID, into likes.UserID) (refused, err error) {
	if into != 0 {
		if _, there, err := w.erasure(ctx, s.HashUser(into)); err != nil || there {
			return store.ErrGone(into), err
		}
	}
	receivers := make(map[likes.UserID]bool)
	err = w.query(ctx, selectReceivers, 1, func(v []driver.Value) { receivers[likes.UserID(number(v[0]))] = true })
	if err != nil {
		return nil, err
	}
	now := time.Now().UnixMicro()
	for _, user := range users {
		hash := s.HashUser(user)
		e, there, err := w.erasure(ctx, hash)
		switch {
		case err != nil:
			return nil, err
		case there:
			if err := store.CheckBegun(user, e.Erasure, e.into, into); err != nil {
				return err, nil
			}
			continue
		case receivers[user]:
			return store.ErrReceives(user), nil
		}
		s.floors.add(hash)
		w.bindBytes(hash[:])
		w.bind(now, int64(user), int64(into), number01(into != 0))
		if err := w.exec(ctx, insertErasure, 1); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// erasureRow is a record and whom the user is merged into.
type erasureRow struct {
	store.Erasure
	into likes.UserID
}

func (c *conn) erasure(ctx context.Context, hash store.UserHash) (e erasureRow, there bool, err error) {
	e.User = hash
	c.bindBytes(hash[:])
	err = c.query(ctx, selectErasure, 1, func(v []driver.Value) {
		there = true
		e.Begun = instant(v[0])
		if v[1] != nil {
			e.Finished = instant(v[1])
		}
		e.Merged = number(v[2]) != 0
		e.Edges, e.Tombstones, e.Relations = number(v[3]), number(v[4]), number(v[5])
		e.into = likes.UserID(number(v[6]))
	})
	return e, there, err
}

// Erasure implements [store.People].
func (s *Store) Erasure(ctx context.Context, user likes.UserID) (store.Erasure, bool, error) {
	var e erasureRow
	var there bool
	err := s.read(ctx, "read an erasure", func(r *conn) (err error) {
		e, there, err = r.erasure(ctx, s.HashUser(user))
		return err
	})
	if err != nil || !there {
		return store.Erasure{}, false, err
	}
	return e.Erasure, true, nil
}

// Unfinished implements [store.People], those that were begun first first.
func (s *Store) Unfinished(ctx context.Context, limit int) (users []likes.UserID, err error) {
	if err := store.CheckStep(limit); err != nil {
		return nil, err
	}
	err = s.read(ctx, "read unfinished erasures", func(r *conn) error {
		r.bind(int64(limit))
		return r.query(ctx, selectUnfinished, 1, func(v []driver.Value) { users = append(users, likes.UserID(number(v[0]))) })
	})
	return users, err
}

// Remains implements [store.People].
func (s *Store) Remains(ctx context.Context, user likes.UserID) (rest store.Remains, err error) {
	err = s.read(ctx, "count a user's rows", func(r *conn) error {
		r.bind(int64(user))
		return r.query(ctx, selectRemains, 1, func(v []driver.Value) {
			rest = store.Remains{Edges: number(v[0]), Tombstones: number(v[1]), Relations: number(v[2])}
		})
	})
	return rest, err
}
