package storetest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

// fillRelations relates user 1 with users 2 to 6, in every way and direction.
func fillRelations(t *testing.T, s Store) {
	exec := func(format string, args ...any) {
		t.Helper()
		require.NoError(t, s.Exec(t.Context(), fmt.Sprintf(format, args...)))
	}
	for other := 2; other <= 6; other++ {
		exec("insert into blocks (blocker_id, blocked_id) values (1, %d)", other)
		exec("insert into follows (follower_id, followee_id) values (%d, 1)", other)
		exec("insert into item_blocks (item_type, item_id, blocked_id) values (1, %d, 1)", other)
		exec("insert into items (item_type, item_id, owner_id, level, state, hide_counts) values (1, %d, 1, 1, 1, %s)", other, "(1 = 0)")
	}
	exec("insert into blocks (blocker_id, blocked_id) values (3, 1), (4, 1), (3, 4), (1, 1)")
	exec("insert into follows (follower_id, followee_id) values (1, 2), (1, 5), (3, 4), (4, 5)")
	exec("insert into item_blocks (item_type, item_id, blocked_id) values (1, 1, 2), (1, 2, 2), (1, 7, 5)")
	exec("insert into items (item_type, item_id, owner_id, level, state, hide_counts) values (1, 1, 2, 1, 1, (1 = 0))")
}

// relationsOfUser1 is how many rows of fillRelations name user 1.
const relationsOfUser1 = 4*5 + 3 + 2

func requireInts(t *testing.T, s Store, want map[string]int64) {
	t.Helper()
	for query, n := range want {
		got, err := s.Int(t.Context(), query)
		require.NoError(t, err, query)
		require.Equal(t, n, got, query)
	}
}

// testEraseRelations removes edges first, then relations, within the limit.
func testEraseRelations(t *testing.T, s Store) {
	fillRelations(t, s)
	issue(t, s, set(1, 1, 1), set(1, 2, 1))
	rest, err := s.Remains(t.Context(), 1)
	require.NoError(t, err)
	require.EqualValues(t, relationsOfUser1, rest.Relations)
	require.EqualValues(t, 2, rest.Edges)
	begin(t, s, 0, 1)
	e, err := s.StepErase(t.Context(), 1, 4)
	require.NoError(t, err)
	require.EqualValues(t, 2, e.Edges)
	require.EqualValues(t, 2, e.Relations)
	rest, err = s.Remains(t.Context(), 1)
	require.NoError(t, err)
	require.EqualValues(t, relationsOfUser1-2, rest.Relations)
	require.EqualValues(t, relationsOfUser1, erase(t, s, 1, 4).Relations)
	requireGone(t, s, 1)
	requireInts(t, s, map[string]int64{
		"select count(*) from blocks":                      1,
		"select count(*) from follows":                     2,
		"select count(*) from item_blocks":                 3,
		"select count(*) from items":                       6,
		"select count(*) from items where owner_id = 0":    5,
		"select count(*) from items where owner_id = 2":    1,
		"select count(*) from erasures where user_id <> 0": 0,
	})
}

// testMergeRelations moves them, without what would relate the other user to
// itself, and without duplicates.
func testMergeRelations(t *testing.T, s Store) {
	fillRelations(t, s)
	require.NoError(t, s.Exec(t.Context(), "insert into blocks (blocker_id, blocked_id) values (2, 3), (2, 1)"))
	before, err := s.Remains(t.Context(), 2)
	require.NoError(t, err)
	require.Positive(t, before.Relations)
	begin(t, s, 2, 1)
	e := erase(t, s, 1, 3)
	require.EqualValues(t, relationsOfUser1+1, e.Relations)
	requireGone(t, s, 1)
	requireInts(t, s, map[string]int64{
		"select count(*) from blocks where blocker_id = 2":                      4, // 3 to 6
		"select count(*) from blocks where blocked_id = 2":                      2, // by 3 and 4
		"select count(*) from blocks":                                           7, // and 3 blocks 4
		"select count(*) from follows where followee_id = 2":                    4, // 3 to 6
		"select count(*) from follows where follower_id = 2":                    1, // 5
		"select count(*) from follows where follower_id = followee_id":          0,
		"select count(*) from follows":                                          7,
		"select count(*) from item_blocks where blocked_id = 2":                 6, // items 1 to 6
		"select count(*) from item_blocks":                                      7,
		"select count(*) from items where owner_id = 2":                         6,
		"select count(*) from items":                                            6,
		"select count(*) from erasures where into_id <> 0":                      0,
		"select count(*) from item_blocks where item_id = 7 and blocked_id = 5": 1,
	})
	requireGone(t, s, likes.UserID(1))
}
