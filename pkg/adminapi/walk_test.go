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
	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/store/sqlite"
)

// remote returns a walker over a server's store, and the store.
func remote(t *testing.T) (*adminapi.Client, *sqlite.Store) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "likes.db"))
	require.NoError(t, err)
	server := httptest.NewServer(adminapi.New(adminapi.Config{
		Walker: s, Authorize: func(*http.Request) error { return nil }, Log: slog.New(slog.DiscardHandler),
	}))
	c, err := adminapi.NewClient(server.URL, func() (string, error) { return "", nil })
	require.NoError(t, err)
	t.Cleanup(func() {
		c.Close()
		server.Close()
		require.NoError(t, s.Close())
	})
	return c, s
}

func TestTheWalkOfAServerIsThatOfItsStore(t *testing.T) {
	c, s := remote(t)
	when := time.Date(2011, 2, 3, 4, 5, 6, 789000, time.UTC)
	var ws []store.Write
	for _, counter := range []likes.Counter{likes.Likes, likes.Saves} {
		for id := likes.ItemID(1<<63 - 5); id > 0; id++ { // until it overflows
			e := likes.Edge{Counter: counter, Item: likes.Item{Type: 32767, ID: id}, User: 1<<63 - 1}
			ws = append(ws, store.Write{Edge: e, Liked: id%2 == 0, Clock: 1, LikedAt: when})
		}
	}
	require.Len(t, ws, 10)
	require.NoError(t, s.Commit(t.Context(), store.Commit{Writes: ws}, make([]store.Written, len(ws))))

	after := likes.Edge{}
	for {
		want, err := s.WalkEdges(t.Context(), after, 3)
		require.NoError(t, err)
		got, err := c.WalkEdges(t.Context(), after, 3)
		require.NoError(t, err)
		require.Equal(t, want.Next, got.Next)
		require.ElementsMatch(t, want.Members, got.Members)
		if after = got.Next; after == (likes.Edge{}) {
			break
		}
	}
	item := likes.Item{Type: 32767, ID: 1<<63 - 2}
	want, err := s.LikedBy(t.Context(), likes.Saves, 1<<63-1, item, 10)
	require.NoError(t, err)
	require.NotEmpty(t, want)
	got, err := c.LikedBy(t.Context(), likes.Saves, 1<<63-1, item, 10)
	require.NoError(t, err)
	require.Equal(t, want, got)
	n, err := c.EstimateEdges(t.Context(), likes.Saves)
	require.NoError(t, err)
	require.EqualValues(t, 2, n)
}

func TestWalksOfBadSizesAndOfAStoreThatIsAway(t *testing.T) {
	c, s := remote(t)
	for _, limit := range []int{-1, 0, store.MaxWalk + 1} {
		_, err := c.WalkEdges(t.Context(), likes.Edge{}, limit)
		require.ErrorIs(t, err, likes.ErrInvalid)
		_, err = c.LikedBy(t.Context(), likes.Likes, 1, likes.Item{}, limit)
		require.ErrorIs(t, err, likes.ErrInvalid)
	}
	require.NoError(t, s.Close())
	for _, call := range []func(context.Context) error{
		func(ctx context.Context) error { _, err := c.WalkEdges(ctx, likes.Edge{}, 1); return err },
		func(ctx context.Context) error { _, err := c.LikedBy(ctx, likes.Likes, 1, likes.Item{}, 1); return err },
		func(ctx context.Context) error { _, err := c.EstimateEdges(ctx, 0); return err },
	} {
		require.ErrorIs(t, call(t.Context()), likes.ErrUnavailable)
	}
}
