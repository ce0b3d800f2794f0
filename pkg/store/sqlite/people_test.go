package sqlite_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/store/storetest"
)

func TestPeople(t *testing.T) {
	storetest.RunPeople(t, func(tb testing.TB) []storetest.PeopleStore { return []storetest.PeopleStore{newRaw(tb)} })
}

// TestErasedUsersStayErasedAfterAStart: the floors, their key and half-done work
// are in the file.
func TestErasedUsersStayErasedAfterAStart(t *testing.T) {
	r := newRaw(t)
	commit(t, r.Store, like(1, 1), like(2, 1), like(3, 1))
	require.NoError(t, r.BeginErase(t.Context(), []likes.UserID{1, 2}, 0))
	_, err := r.StepErase(t.Context(), 1, 10)
	require.NoError(t, err)
	hash := r.HashUser(1)
	require.NoError(t, r.Close())

	s := open(t, r.path)
	require.Equal(t, hash, s.HashUser(1))
	require.NotEqual(t, newRaw(t).HashUser(1), hash, "a key of its own")
	out := commit(t, s, like(1, 1), like(2, 1), like(3, 1))
	require.Equal(t, []bool{true, true, false}, []bool{out[0].Erased, out[1].Erased, out[2].Erased})
	unfinished, err := s.Unfinished(t.Context(), 10)
	require.NoError(t, err)
	require.Equal(t, []likes.UserID{2}, unfinished)
	e, err := s.StepErase(t.Context(), 2, 10)
	require.NoError(t, err)
	require.False(t, e.Finished.IsZero())
	require.EqualValues(t, 1, count(t, s))
	requireExact(t, s)
}

// TestARefusedErasureIsNoFloor: what was rolled back holds nobody back.
func TestARefusedErasureIsNoFloor(t *testing.T) {
	r := newRaw(t)
	require.NoError(t, r.BeginErase(t.Context(), []likes.UserID{9}, 8))
	require.ErrorIs(t, r.BeginErase(t.Context(), []likes.UserID{1, 8}, 0), likes.ErrInvalid)
	out := commit(t, r.Store, like(1, 1), like(8, 1), like(9, 1))
	require.Equal(t, []store.Written{{Erased: true}}, out[2:])
	require.False(t, out[0].Erased || out[1].Erased)
}
