package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/visibility"
)

// ErasableCatalog is a catalog whose users can be erased.
type ErasableCatalog interface {
	store.Catalog
	store.People
}

// RunErasedCatalog runs what a [store.Catalog] and a [store.People] promise together;
// open is called as for [RunCatalog].
func RunErasedCatalog(t *testing.T, open func(testing.TB) ErasableCatalog) {
	t.Run("NothingComesToNameAnErasedUser", func(t *testing.T) { testErasedPuts(t, open(t)) })
	t.Run("RelationsGoWithTheUser", func(t *testing.T) { testGivenRelations(t, open(t), 0) })
	t.Run("RelationsMoveWithTheUser", func(t *testing.T) { testGivenRelations(t, open(t), 2) })
}

func erased(t *testing.T, s ErasableCatalog, user, into likes.UserID) store.Erasure {
	t.Helper()
	require.NoError(t, s.BeginErase(t.Context(), []likes.UserID{user}, into))
	for {
		e, err := s.StepErase(t.Context(), user, 2)
		require.NoError(t, err)
		if !e.Finished.IsZero() {
			return e
		}
	}
}

func testErasedPuts(t *testing.T, s ErasableCatalog) {
	one := likes.Item{Type: 1, ID: 1}
	put(t, s, store.ItemChange{Item: one, Owner: of(3)})
	erased(t, s, 1, 0)
	for _, on := range []func() (bool, error){
		func() (bool, error) {
			_, changed, err := s.PutItem(t.Context(), store.ItemChange{Item: one, Owner: of(1)})
			return changed, err
		},
		func() (bool, error) { return s.PutBlock(t.Context(), store.Block{Blocker: 1, Blocked: 2}, true) },
		func() (bool, error) { return s.PutBlock(t.Context(), store.Block{Blocker: 2, Blocked: 1}, true) },
		func() (bool, error) { return s.PutBlock(t.Context(), store.Block{Item: one, Blocked: 1}, true) },
		func() (bool, error) { return s.PutFollow(t.Context(), store.Follow{Follower: 1, Followee: 2}, true) },
		func() (bool, error) { return s.PutFollow(t.Context(), store.Follow{Follower: 2, Followee: 1}, true) },
	} {
		changed, err := on()
		require.ErrorIs(t, err, likes.ErrErased)
		require.ErrorContains(t, err, "user 1")
		require.False(t, changed)
	}
	changed, err := s.PutFollow(t.Context(), store.Follow{Follower: 1, Followee: 2}, false)
	require.NoError(t, err, "what is gone can be taken away again")
	require.False(t, changed)
	rest, err := s.Remains(t.Context(), 1)
	require.NoError(t, err)
	require.False(t, rest.Any(), "%+v", rest)
	facts := make([]visibility.Facts, 1)
	require.NoError(t, s.Facts(t.Context(), 3, []likes.Item{one}, facts))
	require.Equal(t, likes.UserID(3), facts[0].Owner)
	_, changed, err = s.PutItem(t.Context(), store.ItemChange{Item: one, State: visibility.Hidden})
	require.NoError(t, err)
	require.True(t, changed)
}

// testGivenRelations has relations of user 1 with others, with the one who may get
// them, and with both.
func testGivenRelations(t *testing.T, s ErasableCatalog, into likes.UserID) {
	one, other := likes.Item{Type: 1, ID: 1}, likes.Item{Type: 1, ID: 2}
	put(t, s, store.ItemChange{Item: one, Owner: of(1), Level: visibility.Followers})
	put(t, s, store.ItemChange{Item: other, Owner: of(9)})
	for _, f := range []store.Follow{{Follower: 1, Followee: 9}, {Follower: 5, Followee: 1}, {Follower: 1, Followee: 2}} {
		follow(t, s, f, true)
	}
	for _, b := range []store.Block{{Blocker: 1, Blocked: 6}, {Blocker: 7, Blocked: 1}, {Item: other, Blocked: 1}} {
		block(t, s, b, true)
	}
	before, err := s.Remains(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, int64(7), before.Relations)
	require.Equal(t, int64(7), erased(t, s, 1, into).Relations)
	rest, err := s.Remains(t.Context(), 1)
	require.NoError(t, err)
	require.False(t, rest.Any(), "%+v", rest)
	moved := into != 0
	facts := func(viewer likes.UserID, item likes.Item) visibility.Facts {
		out := make([]visibility.Facts, 1)
		require.NoError(t, s.Facts(t.Context(), viewer, []likes.Item{item}, out))
		return out[0]
	}
	require.Equal(t, into, facts(3, one).Owner)
	require.Equal(t, visibility.Followers, facts(3, one).Level)
	require.Equal(t, moved, facts(5, one).Follows)
	require.Equal(t, moved, facts(6, one).Blocked)
	require.Equal(t, moved, facts(7, one).Blocked)
	require.Equal(t, moved, facts(2, other).Blocked, "the block of the item")
	require.Equal(t, moved, facts(2, other).Follows)
	if moved { // one block and one follow with each of two others, two more, and the item; not the one of itself
		rest, err = s.Remains(t.Context(), into)
		require.NoError(t, err)
		require.Equal(t, int64(6), rest.Relations)
	}
}
