package tiertest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/auth"
	"likectl/pkg/datadir"
	"likectl/pkg/httpapi"
	"likectl/pkg/likes"
	"likectl/pkg/limit"
	"likectl/pkg/memory"
	"likectl/pkg/version"
	"likectl/tiers/tiertest"
)

// The rows of the table that are about limits.

// limitedUser calls an API as one user.
type limitedUser struct {
	t           *testing.T
	base, token string
}

// send sends a request about a post and returns status, headers and body.
func (u limitedUser) send(method, path string, item int) (int, http.Header, map[string]any) {
	u.t.Helper()
	var body io.Reader
	if method != http.MethodGet {
		body = strings.NewReader(fmt.Sprintf(`{"item_id":"%d","item_type":"post"}`, item))
	} else {
		path += fmt.Sprintf("?item_id=%d&item_type=post", item)
	}
	req, err := http.NewRequestWithContext(u.t.Context(), method, u.base+path, body)
	require.NoError(u.t, err)
	req.Header.Set("Authorization", "Bearer "+u.token)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(u.t, err)
	var out map[string]any
	require.NoError(u.t, json.NewDecoder(resp.Body).Decode(&out))
	require.NoError(u.t, resp.Body.Close())
	return resp.StatusCode, resp.Header, out
}

// likes returns how many like the item.
func (u limitedUser) likes(item int) any {
	u.t.Helper()
	status, _, out := u.send(http.MethodGet, "/v1/count", item)
	require.Equal(u.t, http.StatusOK, status)
	counts, ok := out["counts"].(map[string]any)
	require.True(u.t, ok, "%v", out)
	return counts["likes"]
}

// TestAUsedUpLimit likes with the real binary until it is refused.
func TestAUsedUpLimit(t *testing.T) {
	tiertest.Case(t, 111)
	const most = 5
	data := t.TempDir()
	dir, err := datadir.Open(data)
	require.NoError(t, err)
	authority, err := auth.New(auth.Default(dir.Secret()))
	require.NoError(t, err)
	require.NoError(t, dir.Close())
	file := filepath.Join(t.TempDir(), "c.yaml")
	// A second limit of a month: that the test takes a while gives nothing back.
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `
embedded: true
limits:
  like: [{limit: 30, window: 1m}, {limit: %d, window: 720h}]
`, most), 0o600))
	s := tiertest.StartServer(t, tiertest.Build(t), []string{"LIKECTL_LIMITS_ENABLED=true"}, "-c", file, "--data", data)
	token, err := authority.Mint(7, auth.User, time.Hour)
	require.NoError(t, err)
	u := limitedUser{t, s.URL, token}
	for i := range most {
		item := max(1, i) // the second one changes nothing, and costs one
		status, h, out := u.send(http.MethodPost, "/v1/like", item)
		require.Equal(t, http.StatusOK, status, out)
		require.Contains(t, h.Get("RateLimit"), fmt.Sprintf(`"like-2592000";r=%d;`, most-1-i))
	}
	for _, item := range []int{1, 99} { // a repeat that would change nothing, and a new one
		status, h, out := u.send(http.MethodPost, "/v1/like", item)
		require.Equal(t, http.StatusTooManyRequests, status, out)
		require.Equal(t, "application/problem+json", h.Get("Content-Type"))
		require.Equal(t, "rate_limited", out["error"])
		retry, err := strconv.Atoi(h.Get("Retry-After"))
		require.NoError(t, err)
		require.EqualValues(t, retry, out["retry_after"])
		require.InDelta(t, (720 * time.Hour / most).Seconds(), retry, 60, "one comes back after a fifth of the month")
	}
	require.EqualValues(t, 0, u.likes(99), "a refused like was applied")
	status, _, out := u.send(http.MethodDelete, "/v1/like", 1)
	require.Equal(t, http.StatusOK, status, out)
	require.Equal(t, "unliked", out["status"])
	require.EqualValues(t, 0, u.likes(1))
	status, _, _ = u.send(http.MethodPost, "/v1/like", 1)
	require.Equal(t, http.StatusTooManyRequests, status, "an unlike gave a like back")
	require.EqualValues(t, 0, u.likes(1))
}

// TestALoweredLimit lowers a limit under the API. The program reads its limits
// when it starts and has forgotten by then what was used; what it keeps while it
// runs is this.
func TestALoweredLimit(t *testing.T) {
	tiertest.Case(t, 113)
	secret := make([]byte, auth.SecretSize)
	authority, err := auth.New(auth.Default(secret))
	require.NoError(t, err)
	versions, err := version.New(secret)
	require.NoError(t, err)
	like, err := limit.New("like", 100, limit.Limit{Max: 10, Window: time.Hour})
	require.NoError(t, err)
	log := slog.New(slog.DiscardHandler)
	api, err := httpapi.New(httpapi.Config{
		Service: memory.New(), Auth: authority, Versions: versions, Types: likes.DefaultItemTypes(),
		Health: httpapi.NewHealth(log), Limits: httpapi.DefaultLimits(), Rates: httpapi.Rates{Like: like}, Logger: log,
	})
	require.NoError(t, err)
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	user := func(id likes.UserID) limitedUser {
		token, err := authority.Mint(id, auth.User, time.Hour)
		require.NoError(t, err)
		return limitedUser{t, server.URL, token}
	}
	statuses := func(u limitedUser, n int) (ok int) {
		for i := range n {
			if status, _, _ := u.send(http.MethodPost, "/v1/like", i+1); status == http.StatusOK {
				ok++
			}
		}
		return ok
	}
	five, two, none := user(5), user(2), user(1)
	require.Equal(t, 5, statuses(five, 5))
	require.Equal(t, 2, statuses(two, 2))
	require.NoError(t, like.SetLimits(limit.Limit{Max: 4, Window: time.Hour}))
	require.Zero(t, statuses(five, 5), "5 of 10 used are more than 4")
	require.Equal(t, 2, statuses(two, 5))
	require.Equal(t, 4, statuses(none, 10))
	require.NoError(t, like.SetLimits(limit.Limit{Max: 10, Window: time.Hour}))
	require.Equal(t, 6, statuses(none, 20), "raised again, it gives only the difference")
}
