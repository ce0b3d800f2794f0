package adminapi_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/adminapi"
	"likectl/pkg/erase"
	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/store/sqlite"
)

// remoteErasures returns a server's registry, the one in the server, and its
// store.
func remoteErasures(t *testing.T) (remote, local erase.Registry, s *sqlite.Store) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "likes.db"))
	require.NoError(t, err)
	local, err = erase.NewLocal(s, erase.ReceiptConfig{Secret: make([]byte, 32), Store: "sqlite", LogRetention: time.Hour, BackupRetention: time.Hour})
	require.NoError(t, err)
	server := httptest.NewServer(adminapi.New(adminapi.Config{
		Erasures: local, Authorize: func(*http.Request) error { return nil }, Log: slog.New(slog.DiscardHandler),
	}))
	c, err := adminapi.NewClient(server.URL, func() (string, error) { return "", nil })
	require.NoError(t, err)
	t.Cleanup(func() {
		c.Close()
		server.Close()
		require.NoError(t, s.Close())
	})
	return c, local, s
}

func TestTheErasuresOfAServerAreThoseOfItsStore(t *testing.T) {
	remote, local, s := remoteErasures(t)
	const user, into = likes.UserID(1<<63 - 1), likes.UserID(1<<63 - 2)
	var ws []store.Write
	for id := range likes.ItemID(10) {
		e := likes.Edge{Counter: likes.Likes, Item: likes.Item{Type: 1, ID: id + 1}, User: user}
		ws = append(ws, store.Write{Edge: e, Liked: id > 2, Clock: 1, LikedAt: time.Unix(1, 0)})
	}
	require.NoError(t, s.Commit(t.Context(), store.Commit{Writes: ws}, make([]store.Written, len(ws))))

	left, err := remote.Remains(t.Context(), user)
	require.NoError(t, err)
	require.Equal(t, store.Remains{Edges: 7, Tombstones: 3}, left)
	_, begun, err := remote.Erasure(t.Context(), user)
	require.NoError(t, err)
	require.False(t, begun)
	_, err = remote.Receipt(t.Context(), user)
	require.ErrorIs(t, err, likes.ErrNotFound)
	found, err := remote.Verify(t.Context(), user, nil)
	require.NoError(t, err)
	require.Len(t, found, 3)

	require.NoError(t, remote.BeginErase(t.Context(), []likes.UserID{user}, into))
	e, err := remote.StepErase(t.Context(), user, 4)
	require.NoError(t, err)
	require.EqualValues(t, 4, e.Edges+e.Tombstones)
	require.True(t, e.Merged)
	require.Zero(t, e.Finished)
	_, err = remote.Receipt(t.Context(), user)
	require.ErrorIs(t, err, likes.ErrNotYet)
	users, err := remote.Unfinished(t.Context(), 10)
	require.NoError(t, err)
	require.Equal(t, []likes.UserID{user}, users)

	_, err = erase.Resume(t.Context(), remote, erase.MaxPerSecond, func(likes.UserID, store.Erasure) error { return nil })
	require.NoError(t, err)
	want, _, err := local.Erasure(t.Context(), user)
	require.NoError(t, err)
	got, begun, err := remote.Erasure(t.Context(), user)
	require.NoError(t, err)
	require.True(t, begun)
	require.Equal(t, want, got)
	receipt, err := remote.Receipt(t.Context(), user)
	require.NoError(t, err)
	same, err := local.Receipt(t.Context(), user)
	require.NoError(t, err)
	require.Equal(t, same, receipt)
	found, err = remote.Verify(t.Context(), user, &receipt)
	require.NoError(t, err)
	require.Empty(t, found)
	receipt.Edges++
	found, err = remote.Verify(t.Context(), user, &receipt)
	require.NoError(t, err)
	require.Equal(t, "signature", found[0].What)
	left, err = remote.Remains(t.Context(), into)
	require.NoError(t, err)
	require.Equal(t, store.Remains{Edges: 7, Tombstones: 3}, left)
}

func TestErasuresOfNobodyAndOfAStoreThatIsAway(t *testing.T) {
	remote, _, s := remoteErasures(t)
	calls := map[string]func(context.Context, likes.UserID) error{
		"begin": func(ctx context.Context, u likes.UserID) error { return remote.BeginErase(ctx, []likes.UserID{u}, 0) },
		"step":  func(ctx context.Context, u likes.UserID) error { _, err := remote.StepErase(ctx, u, 1); return err },
		"read":  func(ctx context.Context, u likes.UserID) error { _, _, err := remote.Erasure(ctx, u); return err },
		"count": func(ctx context.Context, u likes.UserID) error { _, err := remote.Remains(ctx, u); return err },
	}
	for name, call := range calls {
		for _, u := range []likes.UserID{0, -1} {
			require.ErrorIs(t, call(t.Context(), u), likes.ErrInvalid, name)
		}
	}
	require.ErrorIs(t, calls["step"](t.Context(), 1), likes.ErrInvalid, "it has not begun")
	require.ErrorIs(t, remote.BeginErase(t.Context(), make([]likes.UserID, store.MaxErase+1), 0), likes.ErrInvalid)
	require.ErrorIs(t, remote.BeginErase(t.Context(), []likes.UserID{1}, 1), likes.ErrInvalid)
	for _, n := range []int{-1, 0, store.MaxErase + 1} {
		_, err := remote.StepErase(t.Context(), 1, n)
		require.ErrorIs(t, err, likes.ErrInvalid)
		_, err = remote.Unfinished(t.Context(), n)
		require.ErrorIs(t, err, likes.ErrInvalid)
	}
	require.NoError(t, s.Close())
	for name, call := range calls {
		require.ErrorIs(t, call(t.Context(), 1), likes.ErrUnavailable, name)
	}
}
