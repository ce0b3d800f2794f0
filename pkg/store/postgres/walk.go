package postgres

import (
	"context"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

const (
	// likedSQL is exact, since counters equal their edges, and quick up to some
	// million counters. $1 is a counter, 0 for all.
	likedSQL = "select coalesce(sum(count), 0)::bigint from counters where $1::smallint in (0, counter)"
	// rowsSQL is the planner's guess, with edges that were taken back.
	rowsSQL = "select greatest(reltuples, 0)::bigint from pg_class where oid = 'edges'::regclass"
)

// WalkEdges implements [store.Walker] with one range of the primary key.
func (s *Store) WalkEdges(ctx context.Context, after likes.Edge, limit int) (store.EdgePage, error) {
	if err := store.CheckWalk(limit); err != nil {
		return store.EdgePage{}, err
	}
	var page store.EdgePage
	var last likes.Edge
	seen := 0
	err := s.read(ctx, "walk over the edges", walkStatement, func(p *params) {
		p.int2(int16(after.Counter))
		p.int2(int16(after.Item.Type))
		p.int8(int64(after.Item.ID))
		p.int8(int64(after.User))
		p.int8(int64(limit))
	}, func(row [][]byte) {
		seen++
		last = likes.Edge{
			Counter: likes.Counter(smallint(row[0])), User: likes.UserID(bigint(row[3])),
			Item: likes.Item{Type: likes.ItemType(smallint(row[1])), ID: likes.ItemID(bigint(row[2]))},
		}
		if boolean(row[5]) {
			page.Members = append(page.Members, likes.Member{Edge: last, LikedAt: timestamp(row[4])})
		}
	})
	if err != nil {
		return store.EdgePage{}, err
	}
	if seen == limit {
		page.Next = last
	}
	return page, nil
}

// EstimateEdges implements [store.Walker].
func (s *Store) EstimateEdges(ctx context.Context, c likes.Counter) (n int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*s.timeout)
	defer cancel()
	err = s.pool.QueryRow(ctx, likedSQL, int16(c)).Scan(&n)
	if err != nil && c == 0 { // too many counters to add up in time
		err = s.pool.QueryRow(ctx, rowsSQL).Scan(&n)
	}
	if err != nil {
		return 0, s.readErr("estimate the edges", err)
	}
	return n, nil
}
