package sqlite_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
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

// TestAnErasedUserIsGoneFromTheDisk: SQLite only forgets where deleted rows are, and
// its WAL holds what pages were, unless both are told otherwise. What it moves from
// page to page it may leave a copy of, so a few remain of hundreds.
func TestAnErasedUserIsGoneFromTheDisk(t *testing.T) {
	const gone, other = likes.UserID(0x15c2671bd3f2a2), likes.UserID(0x15c2671bd3f2a9)
	const items = 300
	path := filepath.Join(t.TempDir(), "likes.db")
	s := open(t, path)
	onDisk := func(user likes.UserID) (n int) {
		for _, suffix := range []string{"", "-wal"} {
			b, err := os.ReadFile(path + suffix)
			require.NoError(t, err)
			n += bytes.Count(b, binary.BigEndian.AppendUint64(nil, uint64(user))[1:]) // 7 bytes were its record's
		}
		return n
	}
	for item := range likes.ItemID(items) {
		commit(t, s, like(gone, item+1), like(other, item+1))
	}
	for _, u := range []likes.UserID{gone, other} {
		_, err := s.PutFollow(t.Context(), store.Follow{Follower: u, Followee: 9}, true)
		require.NoError(t, err)
		_, err = s.PutBlock(t.Context(), store.Block{Blocker: 9, Blocked: u}, true)
		require.NoError(t, err)
	}
	require.Greater(t, onDisk(gone), items)
	require.NoError(t, s.BeginErase(t.Context(), []likes.UserID{gone}, 0))
	for finished := false; !finished; {
		e, err := s.StepErase(t.Context(), gone, 100)
		require.NoError(t, err)
		finished = !e.Finished.IsZero()
	}
	require.Greater(t, onDisk(other), items)
	require.Less(t, onDisk(gone), items/20, "bytes that spell the user's id")
}
