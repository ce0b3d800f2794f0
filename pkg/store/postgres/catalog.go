package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/visibility"
)

// PutItem implements [store.Catalog] with one statement.
func (s *Store) PutItem(ctx context.Context, c store.ItemChange) (now visibility.Item, changed bool, err error) {
	if err := c.Validate(); err != nil {
		return visibility.Item{}, false, err
	}
	err = s.put(ctx, fmt.Sprintf("put item %d:%d", c.Item.Type, c.Item.ID), putItemStatement, func(p *params) {
		p.int2(int16(c.Item.Type))
		p.int8(int64(c.Item.ID))
		owner, hide := likes.UserID(-1), int16(-1)
		if c.Owner != nil {
			owner = *c.Owner
		}
		if c.HideCounts != nil {
			hide = 0
			if *c.HideCounts {
				hide = 1
			}
		}
		p.int8(int64(owner))
		p.int2(int16(c.Level))
		p.int2(int16(c.State))
		p.int2(hide)
	}, func(v [][]byte) {
		changed = boolean(v[0])
		now = visibility.Item{
			Item: c.Item, Owner: likes.UserID(bigint(v[1])),
			Level: visibility.Level(smallint(v[2])), State: visibility.State(smallint(v[3])), HideCounts: boolean(v[4]), //nolint:gosec // as they were stored
		}
	})
	if err != nil {
		return visibility.Item{}, false, err
	}
	return now, changed, nil
}

// PutBlock implements [store.Catalog] with one statement.
func (s *Store) PutBlock(ctx context.Context, b store.Block, on bool) (bool, error) {
	if err := b.Validate(); err != nil {
		return false, err
	}
	if b.Blocker > 0 {
		return s.putPair(ctx, "put a block", putBlockStatement, b.Blocker, b.Blocked, on)
	}
	return s.putMember(ctx, "put a block of an item", putItemBlockStatement, func(p *params) {
		p.int2(int16(b.Item.Type))
		p.int8(int64(b.Item.ID))
		p.int8(int64(b.Blocked))
		p.bool(on)
	})
}

// PutFollow implements [store.Catalog] with one statement.
func (s *Store) PutFollow(ctx context.Context, f store.Follow, on bool) (bool, error) {
	if err := f.Validate(); err != nil {
		return false, err
	}
	return s.putPair(ctx, "put a follow", putFollowStatement, f.Follower, f.Followee, on)
}

func (s *Store) putPair(ctx context.Context, what, statement string, from, to likes.UserID, on bool) (bool, error) {
	return s.putMember(ctx, what, statement, func(p *params) {
		p.int8(int64(from))
		p.int8(int64(to))
		p.bool(on)
	})
}

// putMember runs a write that answers whether it changed anything.
func (s *Store) putMember(ctx context.Context, what, statement string, encode func(*params)) (changed bool, err error) {
	err = s.put(ctx, what, statement, encode, func(v [][]byte) { changed = boolean(v[0]) })
	return changed && err == nil, err
}

// put runs a write of the catalog until it has an answer. A write that was given up
// must not come back here either: an item that became private since would be
// public again.
func (s *Store) put(ctx context.Context, what, statement string, encode func(*params), row func([][]byte)) error {
	var fixed int
	return s.write(ctx, what, func(p *params) { encode(p); fixed = p.mark() }, func(ctx context.Context, p *params) error {
		p.back(fixed)
		p.int8(s.inTime(ctx))
		answered := false
		if err := s.run(ctx, statement, p, func(v [][]byte) { answered = true; row(v) }); err != nil {
			return err
		}
		if !answered { // late, or see putItemSQL: nothing was changed
			_, err := s.Now(ctx)
			return errors.Join(errLate, err)
		}
		return nil
	})
}

// Facts implements [store.Catalog] with one statement.
func (s *Store) Facts(ctx context.Context, viewer likes.UserID, items []likes.Item, out []visibility.Facts) error {
	if err := store.CheckFacts(viewer, items); err != nil || len(items) == 0 {
		return err
	}
	out = out[:len(items)]
	return s.read(ctx, fmt.Sprintf("read facts about %d items", len(items)), factsStatement, func(p *params) {
		p.int8(int64(viewer))
		encodeItems(p, items)
	}, func(v [][]byte) {
		out[bigint(v[0])-1] = visibility.Facts{
			Known: boolean(v[1]), Owner: likes.UserID(bigint(v[2])),
			Level: visibility.Level(smallint(v[3])), State: visibility.State(smallint(v[4])), HideCounts: boolean(v[5]), //nolint:gosec // as they were stored
			Follows: boolean(v[6]), Blocked: boolean(v[7]),
		}
	})
}

// Restricts implements [store.Catalog].
func (s *Store) Restricts(ctx context.Context) (any bool, err error) {
	err = s.read(ctx, "look for restrictions", restrictsStatement, func(*params) {}, func(v [][]byte) { any = boolean(v[0]) })
	return any, err
}

// Blocked implements [store.Catalog] with one statement.
func (s *Store) Blocked(ctx context.Context, viewer likes.UserID, users []likes.UserID, out []bool) error {
	if err := store.CheckBlocked(viewer, users); err != nil || len(users) == 0 {
		return err
	}
	out = out[:len(users)]
	return s.read(ctx, fmt.Sprintf("read blocks of %d users", len(users)), blockedStatement, func(p *params) {
		p.int8(int64(viewer))
		p.int8s(len(users), func(i int) int64 { return int64(users[i]) })
	}, func(v [][]byte) {
		out[bigint(v[0])-1] = boolean(v[1])
	})
}

// Totals implements [store.Catalog] with one statement. It reads all that the user
// likes and owns, so it takes longer the more that is.
func (s *Store) Totals(ctx context.Context, user likes.UserID) (store.Totals, error) {
	if err := likes.CheckUser(user); err != nil {
		return store.Totals{}, err
	}
	var t store.Totals
	err := s.read(ctx, "add up a user's totals", totalsStatement, func(p *params) {
		t = store.NewTotals()
		p.int8(int64(user))
		all := likes.Counters()
		p.int2s(len(all), func(i int) int16 { return int16(all[i]) })
	}, func(v [][]byte) {
		sums := [...]map[likes.Counter]int64{t.Given, t.Received, t.ReceivedHidden}[binary.BigEndian.Uint32(v[0])]
		sums[likes.Counter(smallint(v[1]))] = bigint(v[2])
	})
	if err != nil {
		return store.Totals{}, err
	}
	return t, nil
}
