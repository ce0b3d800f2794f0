package app_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/cmd/app"
	"likectl/cmd/cli"
	"likectl/pkg/auth"
	"likectl/pkg/config"
	"likectl/pkg/datadir"
	"likectl/pkg/likes"
)

// A served API keeps out what the configuration says, believes its proxies though
// limits are off, counts refusals, and follows the file.
func TestServer_GuardsAgainstAbuse(t *testing.T) {
	dir := t.TempDir()
	list := filepath.Join(dir, "reputation")
	require.NoError(t, os.WriteFile(list, []byte("user 1 deny\n"), 0o600))
	cfg := config.Default()
	cfg.Data, cfg.Listen, cfg.AdminListen = filepath.Join(dir, "data"), "127.0.0.1:0", "127.0.0.1:0"
	cfg.Limits.Enabled, cfg.Limits.TrustedProxies = false, []string{"127.0.0.1"}
	cfg.Abuse.Reputation.File, cfg.Abuse.Refresh = list, 5*time.Millisecond
	cfg.Abuse.Velocity.IP = []config.Limit{{Limit: 1, Window: 24 * time.Hour}}
	server, err := app.Open(t.Context(), cfg, slog.New(slog.DiscardHandler), false)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	secret, err := datadir.LoadSecret(cfg.Data)
	require.NoError(t, err)
	tokens, err := auth.New(auth.Default(secret))
	require.NoError(t, err)

	send := func(method string, user likes.UserID, from string) int {
		token, err := tokens.Mint(user, auth.User, time.Hour)
		require.NoError(t, err)
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+server.Addr()+"/v1/like", strings.NewReader(`{"item_id":"1","item_type":"post"}`))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("X-Forwarded-For", from)
		return fetch(t, req, nil)
	}
	require.Equal(t, http.StatusForbidden, send(http.MethodPost, 1, "192.0.2.1"))
	require.Equal(t, http.StatusOK, send(http.MethodDelete, 1, "192.0.2.1"))
	require.Equal(t, http.StatusOK, send(http.MethodPost, 2, "192.0.2.2"))
	require.Equal(t, http.StatusTooManyRequests, send(http.MethodPost, 3, "192.0.2.2"))
	require.Equal(t, http.StatusOK, send(http.MethodPost, 3, "192.0.2.3"))

	var metrics strings.Builder
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+server.AdminAddr()+"/metrics", http.NoBody)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, fetch(t, req, &metrics))
	for _, line := range []string{
		`likectl_abuse_refused_total{reason="list"} 1`, `likectl_abuse_refused_total{reason="ip"} 1`,
		`likectl_abuse_refused_total{reason="scorer"} 0`, `likectl_abuse_scorer_requests_total{result="allow"} 0`,
	} {
		require.Contains(t, metrics.String(), line+"\n")
	}
	require.NotContains(t, metrics.String(), "192.0.2.")

	require.NoError(t, os.WriteFile(list+".next", []byte("user 4 deny\n"), 0o600))
	require.NoError(t, os.Rename(list+".next", list))
	require.Eventually(t, func() bool { return send(http.MethodPost, 4, "192.0.2.4") == http.StatusForbidden }, 10*time.Second, time.Millisecond)
	require.Equal(t, http.StatusOK, send(http.MethodPost, 1, "192.0.2.1"))
	http.DefaultClient.CloseIdleConnections()
	stop()
	require.NoError(t, <-ended)

	require.NoError(t, os.WriteFile(list, []byte("user 4 deny\nuser deny\n"), 0o600))
	_, err = app.Open(t.Context(), cfg, slog.New(slog.DiscardHandler), false)
	require.Equal(t, cli.Usage, cli.CodeOf(err))
	require.ErrorContains(t, err, "list file "+list+": line 2: ")
}

// fetch sends a request, copies the body, and returns the status.
func fetch(t *testing.T, req *http.Request, body io.Writer) int {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	if body == nil {
		body = io.Discard
	}
	_, err = io.Copy(body, resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}
