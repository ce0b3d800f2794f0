package postgres

import (
	"context"
	"fmt"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

// read runs a statement that changes nothing, when it is its turn among the
// reads. Every failure is ErrUnavailable.
func (s *Store) read(ctx context.Context, what, statement string, encode func(*params), row func([][]byte)) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.admit(ctx); err != nil {
		return s.readErr(what, err)
	}
	defer s.leave()
	return s.query(ctx, what, statement, encode, row)
}

// admit waits until one of the connections that commits leave is free. Reads
// wait here and not for the pool, which commits would share: it serves who came
// first.
func (s *Store) admit(ctx context.Context) error {
	select {
	case s.reading <- struct{}{}:
		return nil
	case <-ctx.Done():
		return &unsentError{ctx.Err()}
	}
}

func (s *Store) leave() { <-s.reading }

// query runs a statement that changes nothing. Every failure is ErrUnavailable.
func (s *Store) query(ctx context.Context, what, statement string, encode func(*params), row func([][]byte)) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	p := s.params.Get().(*params) //nolint:forcetypeassert // the pool makes nothing else
	defer s.params.Put(p)
	p.reset()
	encode(p)
	if err := persist(ctx, func() error { return s.run(ctx, statement, p, row) }); err != nil {
		return s.readErr(what, err)
	}
	return nil
}

func encodeItems(p *params, items []likes.Item) {
	p.int2s(len(items), func(i int) int16 { return int16(items[i].Type) })
	p.int8s(len(items), func(i int) int64 { return int64(items[i].ID) })
}

// Counts implements [store.Edges].
func (s *Store) Counts(ctx context.Context, c likes.Counter, items []likes.Item, out []store.CountRow) error {
	if len(items) == 0 {
		return nil
	}
	clear(out[:len(items)])
	return s.read(ctx, fmt.Sprintf("read %d counts", len(items)), countsStatement, func(p *params) {
		p.int2(int16(c))
		encodeItems(p, items)
	}, func(row [][]byte) {
		out[bigint(row[0])-1] = store.CountRow{N: bigint(row[1]), Version: likes.CountVersion{Epoch: s.epoch, N: bigint(row[2])}}
	})
}

// Registers implements [store.Edges].
func (s *Store) Registers(ctx context.Context, c likes.Counter, user likes.UserID, items []likes.Item, out []likes.Register) error {
	if len(items) == 0 {
		return nil
	}
	clear(out[:len(items)])
	return s.read(ctx, fmt.Sprintf("read %d edges", len(items)), registersStatement, func(p *params) {
		p.int2(int16(c))
		p.int8(int64(user))
		encodeItems(p, items)
	}, func(row [][]byte) {
		out[bigint(row[0])-1] = likes.Register{Liked: boolean(row[1]), Clock: likes.Clock(bigint(row[2])), LikedAt: timestamp(row[3])}
	})
}

// Likers implements [store.Edges] with one range of the primary key.
func (s *Store) Likers(ctx context.Context, c likes.Counter, item likes.Item, after likes.UserID, limit int) ([]likes.Member, error) {
	var page []likes.Member
	err := s.read(ctx, "read likers", likersStatement, func(p *params) {
		page = page[:0]
		p.int2(int16(c))
		p.int2(int16(item.Type))
		p.int8(int64(item.ID))
		p.int8(int64(after))
		p.int8(int64(limit))
	}, func(row [][]byte) {
		e := likes.Edge{Counter: c, Item: item, User: likes.UserID(bigint(row[0]))}
		page = append(page, likes.Member{Edge: e, LikedAt: timestamp(row[1])})
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}

// LikedBy implements [store.Edges] with two ranges of the user's index.
func (s *Store) LikedBy(ctx context.Context, c likes.Counter, user likes.UserID, after likes.Item, limit int) ([]likes.Member, error) {
	var page []likes.Member
	err := s.read(ctx, "read a user's likes", likedByStatement, func(p *params) {
		p.int8(int64(user))
		p.int2(int16(c))
		p.int2(int16(after.Type))
		p.int8(int64(after.ID))
		p.int8(int64(limit))
	}, func(row [][]byte) {
		item := likes.Item{Type: likes.ItemType(smallint(row[0])), ID: likes.ItemID(bigint(row[1]))}
		page = append(page, likes.Member{Edge: likes.Edge{Counter: c, Item: item, User: user}, LikedAt: timestamp(row[2])})
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}
