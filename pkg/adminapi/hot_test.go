package adminapi_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/adminapi"
	"likectl/pkg/auth"
	"likectl/pkg/hot"
	"likectl/pkg/likes"
	"likectl/pkg/store"
)

func TestHotItems(t *testing.T) {
	tracker, err := hot.New(1)
	require.NoError(t, err)
	ws := make([]store.Write, 1200) // more than a slice of a tracker keeps
	done := make([]store.Written, len(ws))
	for i := range ws {
		ws[i].Edge = likes.Edge{Counter: likes.Likes, Item: likes.Item{Type: 40, ID: likes.ItemID(1<<63 - 1 - i)}, User: 1}
		if i < 200 {
			ws[i].Edge.Item = likes.Item{Type: 3, ID: 7}
		}
		done[i].Applied = true
	}
	for range 2 {
		tracker.Wrote(0, ws, done)
	}
	authority, err := auth.New(auth.Default(make([]byte, auth.SecretSize)))
	require.NoError(t, err)
	server := httptest.NewServer(adminapi.New(adminapi.Config{
		Hot: tracker, Types: map[string]int{"post": 1, "clip": 40}, Authorize: adminapi.AdminOnly(authority), Log: slog.New(slog.DiscardHandler),
	}))
	defer server.Close()
	scope := auth.Admin
	c, err := adminapi.NewClient(server.URL, func() (string, error) { return authority.Mint(1, scope, time.Minute) })
	require.NoError(t, err)
	defer c.Close()

	items, err := c.Hot(t.Context(), 2)
	require.NoError(t, err)
	require.Len(t, items, 2)
	require.Equal(t, "3", items[0].ItemType, "the configuration has no name for it")
	require.Equal(t, "7", items[0].ItemID)
	require.InDelta(t, 400, items[0].PerSecond, 1e-9)
	require.Equal(t, "clip", items[1].ItemType)
	items, err = c.Hot(t.Context(), adminapi.MaxHot)
	require.NoError(t, err)
	require.Len(t, items, adminapi.MaxHot)

	for _, n := range []int{-1, 0, adminapi.MaxHot + 1} {
		_, err = c.Hot(t.Context(), n)
		require.ErrorIs(t, err, likes.ErrInvalid, n)
	}
	for _, who := range []auth.Scope{auth.User, auth.Service} {
		scope = who
		_, err = c.Hot(t.Context(), 1)
		require.ErrorContains(t, err, "403")
	}
	response, err := http.Get(server.URL + "/admin/v1/hot")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusUnauthorized, response.StatusCode)
}
