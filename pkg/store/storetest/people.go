package storetest

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

// PeopleStore is what [RunPeople] asks of a store.
type PeopleStore interface {
	store.People
	Commit(ctx context.Context, c store.Commit, out []store.Written) error
	Counts(ctx context.Context, c likes.Counter, items []likes.Item, out []store.CountRow) error
	Registers(ctx context.Context, c likes.Counter, user likes.UserID, items []likes.Item, out []likes.Register) error
}

// RunPeople holds a store to the sentences of [store.People]. open returns one or
// more instances over the same empty data, which live until the end of the test
// they are given. Where there is an auditor too, it finds no drift after any test.
func RunPeople(t *testing.T, open func(testing.TB) []PeopleStore) {
	tests := []struct {
		name string
		run  func(*testing.T, []PeopleStore)
	}{
		{"NothingOfAnErasedUserIsApplied", testFloor},
		{"WhatCannotBegin", testCannotBegin},
		{"BeginningAgainChangesNothing", testBeginAgain},
		{"StepsAreBoundedAndAddUp", testSteps},
		{"StepsThatCannotBe", testStepsThatCannotBe},
		{"EraseLeavesTheCountsThatUnlikesLeave", testEraseEqualsUnlikes},
		{"MergeIsTheUnion", testMerge},
		{"MergeOfTombstones", testMergeRegisters},
		{"ManyUsersAtOnce", testManyUsers},
		{"ErasersOfOneUserAtOnce", testErasersAtOnce},
		{"EraseUnderWriters", testEraseUnderWriters},
		{"MergeUnderWriters", testMergeUnderWriters},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			all := open(t)
			test.run(t, all)
			if s, ok := all[0].(Store); ok {
				requireExact(t, s)
			}
		})
	}
}

// erase steps until the user's erasure is finished; that takes fewer steps than
// any test has rows.
func erase(t testing.TB, s store.People, user likes.UserID, limit int) store.Erasure {
	t.Helper()
	for range 1000 {
		e, err := s.StepErase(t.Context(), user, limit)
		require.NoError(t, err)
		if !e.Finished.IsZero() {
			return e
		}
	}
	require.FailNow(t, "the erasure does not end")
	return store.Erasure{}
}

func begin(t testing.TB, s store.People, into likes.UserID, users ...likes.UserID) {
	t.Helper()
	require.NoError(t, s.BeginErase(t.Context(), users, into))
}

// put commits writes that must succeed.
func put(t testing.TB, s PeopleStore, isReplay bool, ws ...store.Write) []store.Written {
	t.Helper()
	out := make([]store.Written, len(ws))
	require.NoError(t, s.Commit(t.Context(), store.Commit{Replay: isReplay, Writes: sorted(ws)}, out))
	return out
}

// likesOf returns the counts of items 1 to n.
func likesOf(t testing.TB, s PeopleStore, n int64) []int64 {
	t.Helper()
	items, out := itemsTo(n), make([]store.CountRow, n)
	require.NoError(t, s.Counts(t.Context(), likes.Likes, items, out))
	counts := make([]int64, n)
	for i := range out {
		counts[i] = out[i].N
	}
	return counts
}

func itemsTo(n int64) (items []likes.Item) {
	for id := int64(1); id <= n; id++ {
		items = append(items, item(id))
	}
	return items
}

// registersOf returns the user's registers of items 1 to n.
func registersOf(t testing.TB, s PeopleStore, user likes.UserID, n int64) []likes.Register {
	t.Helper()
	out := make([]likes.Register, n)
	require.NoError(t, s.Registers(t.Context(), likes.Likes, user, itemsTo(n), out))
	return out
}

// remains wants that nothing is left of the user.
func requireGone(t testing.TB, s store.People, user likes.UserID) {
	t.Helper()
	rest, err := s.Remains(t.Context(), user)
	require.NoError(t, err)
	require.False(t, rest.Any(), "%+v", rest)
}

// testFloor mixes an erased user's writes with those of others, from before the
// first step and after the last, of every kind and with every clock.
func testFloor(t *testing.T, all []PeopleStore) {
	s := all[0]
	put(t, s, true, set(1, 1, 1), set(2, 1, 1))
	require.Equal(t, []int64{2}, likesOf(t, s, 1))
	was := registersOf(t, s, 2, 1)
	begin(t, s, 0, 2)
	gone := store.Written{Erased: true}
	for range 2 {
		before := likesOf(t, s, 3)
		out := put(t, s, false, clear(1, 1, 5), clear(2, 1, 6), set(3, 1, 6), set(2, 2, 6), set(2, 3, 6), set(4, 3, 6))
		for i, w := range []bool{false, true, false, true, true, false} {
			require.Equal(t, w, out[i].Erased, i)
			require.Equal(t, !w, out[i].Applied, i)
			if w {
				require.Equal(t, gone, out[i])
			}
		}
		after := likesOf(t, s, 3)
		require.Equal(t, []int64{before[0], 0, 1}, after, "one unlike, one like; the like of item 3")
		require.Equal(t, after[0], out[0].Count)
		require.Equal(t, after[0], out[2].Count)
		require.Equal(t, after[2], out[5].Count)
		require.Equal(t, []store.Written{gone}, put(t, s, false, set(2, 7, 7)), "nothing else in the batch")
		require.Equal(t, gone, put(t, s, true, set(1, 1, 1<<40), clear(2, 1, 1<<40))[1], "however late")
		require.Equal(t, []store.Written{gone, gone}, put(t, s, true, set(2, 1, 1), set(2, 8, 1<<40)))
		put(t, s, true, clear(3, 1, 1<<41), clear(4, 3, 1<<41))
		if e, _, err := s.Erasure(t.Context(), 2); e.Finished.IsZero() {
			require.NoError(t, err)
			require.Equal(t, was, registersOf(t, s, 2, 1))
			erase(t, s, 2, 10)
			put(t, s, true, clear(1, 1, 1<<42))
			put(t, s, true, set(1, 1, 1<<42+1))
		}
		requireGone(t, s, 2)
	}
}

func testCannotBegin(t *testing.T, all []PeopleStore) {
	s, ctx := all[0], t.Context()
	invalid := func(into likes.UserID, users ...likes.UserID) {
		t.Helper()
		require.ErrorIs(t, s.BeginErase(ctx, users, into), likes.ErrInvalid)
	}
	require.NoError(t, s.BeginErase(ctx, nil, 0))
	begin(t, s, 0, 100)
	begin(t, s, 21, 20) // 20 into 21
	invalid(0, 1, 0)
	invalid(0, 1, -5)
	invalid(-1, 1)
	invalid(1, 1)
	invalid(2, 1, 3)
	invalid(100, 1)
	invalid(20, 1)
	invalid(1, 100)
	invalid(22, 20)
	invalid(0, 1, 20)
	invalid(0, 1, 21)
	invalid(22, 21)
	invalid(0, make([]likes.UserID, store.MaxErase+1)...)
	for _, user := range []likes.UserID{1, 2, 3, 21, 22} {
		_, there, err := s.Erasure(ctx, user)
		require.NoError(t, err)
		require.False(t, there, "nothing of a refused call is recorded: %d", user)
	}
	begin(t, s, 21, 1) // two into one
	erase(t, s, 20, 5)
	require.ErrorContains(t, s.BeginErase(ctx, []likes.UserID{21}, 0), "let that merge finish")
	erase(t, s, 1, 5)
	begin(t, s, 0, 21)
	invalid(0, 20)
}

func testBeginAgain(t *testing.T, all []PeopleStore) {
	s := all[0]
	put(t, s, false, set(1, 1, 1), set(2, 1, 1))
	begin(t, s, 0, 1, 1)
	begin(t, s, 3, 2)
	for range 2 {
		for user, into := range map[likes.UserID]likes.UserID{1: 0, 2: 3} {
			before, there, err := s.Erasure(t.Context(), user)
			require.NoError(t, err)
			require.True(t, there)
			require.Equal(t, into != 0, before.Merged)
			require.Equal(t, s.HashUser(user), before.User)
			begin(t, s, into, user)
			after, _, err := s.Erasure(t.Context(), user)
			require.NoError(t, err)
			require.Equal(t, before, after)
			erase(t, s, user, 10)
		}
	}
	require.Equal(t, []int64{1}, likesOf(t, s, 1))
}

func testSteps(t *testing.T, all []PeopleStore) {
	s, ctx := all[0], t.Context()
	for id := int64(1); id <= 10; id++ {
		put(t, s, false, set(1, id, id), set(2, id, id))
	}
	put(t, s, false, clear(1, 2, 20), clear(1, 9, 20), clear(1, 11, 20))
	save := set(1, 3, 5)
	save.Edge.Counter = likes.Saves
	put(t, s, false, save)
	_, there, err := s.Erasure(ctx, 1)
	require.NoError(t, err)
	require.False(t, there)
	begin(t, s, 0, 1)
	unfinished, err := s.Unfinished(ctx, 10)
	require.NoError(t, err)
	require.Equal(t, []likes.UserID{1}, unfinished)
	for done := int64(0); done < 12; done += 5 {
		rest, err := s.Remains(ctx, 1)
		require.NoError(t, err)
		require.Equal(t, 12-done, rest.Edges+rest.Tombstones)
		e, err := s.StepErase(ctx, 1, 5)
		require.NoError(t, err)
		require.Equal(t, min(done+5, 12), e.Edges+e.Tombstones)
		require.Equal(t, done+5 > 12, !e.Finished.IsZero())
		read, _, err := s.Erasure(ctx, 1)
		require.NoError(t, err)
		require.Equal(t, e, read)
	}
	requireGone(t, s, 1)
	e := erase(t, s, 1, 5)
	require.Equal(t, []int64{9, 3, 0}, []int64{e.Edges, e.Tombstones, e.Relations})
	require.False(t, e.Merged)
	require.False(t, e.Finished.Before(e.Begun))
	require.Equal(t, []int64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0}, likesOf(t, s, 11))
	saves := make([]store.CountRow, 1)
	require.NoError(t, s.Counts(ctx, likes.Saves, []likes.Item{item(3)}, saves))
	require.Zero(t, saves[0].N)
	require.EqualValues(t, 2, saves[0].Version.N, "a count that changed has a later version")
	unfinished, err = s.Unfinished(ctx, 10)
	require.NoError(t, err)
	require.Empty(t, unfinished)
}

func testStepsThatCannotBe(t *testing.T, all []PeopleStore) {
	s, ctx := all[0], t.Context()
	_, err := s.StepErase(ctx, 1, 10)
	require.ErrorIs(t, err, likes.ErrInvalid)
	begin(t, s, 0, 1, 2, 3)
	for _, limit := range []int{-1, 0, store.MaxErase + 1} {
		_, err := s.StepErase(ctx, 1, limit)
		require.ErrorIs(t, err, likes.ErrInvalid)
		_, err = s.Unfinished(ctx, limit)
		require.ErrorIs(t, err, likes.ErrInvalid)
	}
	two, err := s.Unfinished(ctx, 2)
	require.NoError(t, err)
	require.Len(t, two, 2)
	erase(t, s, two[0], 1)
	rest, err := s.Unfinished(ctx, store.MaxErase)
	require.NoError(t, err)
	require.Len(t, rest, 2)
	require.False(t, slices.Contains(rest, two[0]))
}

// testEraseEqualsUnlikes takes back the same likes on two paths.
func testEraseEqualsUnlikes(t *testing.T, all []PeopleStore) {
	s := all[0]
	for id := int64(1); id <= 6; id++ {
		put(t, s, false, set(1, id, 1), set(2, 6+id, 1), set(3, id, 1), set(3, 6+id, 1))
	}
	for id := int64(1); id <= 6; id++ {
		put(t, s, false, clear(1, id, 2))
	}
	begin(t, s, 0, 2)
	erase(t, s, 2, 4)
	items, rows := itemsTo(12), make([]store.CountRow, 12)
	require.NoError(t, s.Counts(t.Context(), likes.Likes, items, rows))
	require.Equal(t, rows[:6], rows[6:], "counts and versions")
	require.EqualValues(t, 1, rows[0].N)
}

// testManyUsers begins many erasures in one call.
func testManyUsers(t *testing.T, all []PeopleStore) {
	s := all[0]
	const n = 2500 // more than a statement of any store takes
	users := make([]likes.UserID, n)
	ws := make([]store.Write, n)
	for i := range users {
		users[i] = likes.UserID(i + 1)
		ws[i] = set(int64(i+1), 1, 1)
	}
	put(t, s, false, ws...)
	require.Equal(t, []int64{n}, likesOf(t, s, 1))
	begin(t, s, 0, users[:n-1]...)
	out := put(t, s, false, ws...)
	for i := range out {
		require.Equal(t, i < n-1, out[i].Erased, i)
	}
	for _, user := range users[:20] {
		erase(t, s, user, 10)
	}
	require.Equal(t, []int64{n - 20}, likesOf(t, s, 1))
}
