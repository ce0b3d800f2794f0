package app_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/cmd/app"
	"likectl/pkg/auth"
	"likectl/pkg/config"
	"likectl/pkg/datadir"
	"likectl/pkg/likes"
	"likectl/pkg/reconcile"
)

// TestTheMetricsAreThoseOfTheReadme: what a server shows is documented, and the
// other way around.
func TestTheMetricsAreThoseOfTheReadme(t *testing.T) {
	dir := t.TempDir()
	keyFile := filepath.Join(dir, "idp.pem")
	newKey(t, keyFile)
	cfg := config.Default()
	cfg.Data, cfg.Listen, cfg.AdminListen = filepath.Join(dir, "data"), "127.0.0.1:0", freeAddress(t)
	cfg.Auth.Keys = []config.AuthKey{{File: keyFile, Alg: "EdDSA", KID: "k", Issuer: "idp", Audience: "likes", Scopes: []string{"user"}}}
	cfg.Auth.FileRefresh = 5 * time.Millisecond // the first reading is not counted
	cfg.Abuse.Reputation.File, cfg.Abuse.Refresh = filepath.Join(dir, "list"), 5*time.Millisecond
	require.NoError(t, os.WriteFile(cfg.Abuse.Reputation.File, []byte("user 9 deny\n"), 0o600))
	server, err := app.Open(t.Context(), cfg, slog.New(slog.DiscardHandler), false)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	defer func() {
		http.DefaultClient.CloseIdleConnections()
		stop()
		require.NoError(t, <-ended)
	}()

	like(t, cfg.Data, server.Addr())
	like(t, cfg.Data, server.Addr()) // again: unchanged
	admin, err := app.AdminClient(cfg, "http://"+cfg.AdminListen)
	require.NoError(t, err)
	defer admin.Close()
	sum, err := admin.Reconcile(t.Context(), reconcile.Config{PerSecond: reconcile.MaxPerSecond, DryRun: true},
		func(int64, int64) {}, func(reconcile.Found) error { return nil })
	require.NoError(t, err)
	require.EqualValues(t, 1, sum.Checked)

	var text string
	require.Eventually(t, func() bool {
		text = scrape(t, cfg.AdminListen)
		return strings.Contains(text, "likectl_auth_key_reads_total") && strings.Contains(text, "likectl_abuse_file_reads_total")
	}, 10*time.Second, 5*time.Millisecond)
	names := func(pattern, text string) (all []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			all = append(all, m[1])
		}
		slices.Sort(all)
		return all
	}
	readme, err := os.ReadFile("../../pkg/telemetry/README.md")
	require.NoError(t, err)
	require.Equal(t, names("(?m)^# TYPE (likectl_[a-z_]+) ", text), names("(?m)^\\| `(likectl_[a-z_]+)` \\|", string(readme)))
	for _, line := range []string{
		"likectl_mode 1",
		"likectl_hot_items 0",
		`likectl_operations_total{operation="like",outcome="changed"} 1`,
		`likectl_operations_total{operation="like",outcome="unchanged"} 1`,
		`likectl_operations_total{operation="unlike",outcome="changed"} 0`,
		`likectl_commit_operations_sum{kind="write"} 2`,
		`likectl_http_request_duration_seconds_count{route="POST /v1/like",status="200"} 2`,
		"likectl_reconcile_checked_total 1",
		"likectl_drift_ratio 0",
		"likectl_drift_age_seconds 0",
	} {
		require.Contains(t, text, line+"\n")
	}
	// The thresholds of the readme are bounds of buckets.
	for _, bound := range []string{"0.02", "0.05", "0.1"} {
		require.Contains(t, text, `likectl_http_request_duration_seconds_bucket{route="POST /v1/like",status="200",le="`+bound+`"}`)
	}
}

func like(t *testing.T, data, address string) {
	t.Helper()
	secret, err := datadir.LoadSecret(data)
	require.NoError(t, err)
	tokens, err := auth.New(auth.Default(secret))
	require.NoError(t, err)
	token, err := tokens.Mint(likes.UserID(1), auth.User, time.Minute)
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/v1/like", strings.NewReader(`{"item_id":"1","item_type":"post"}`))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
}

func scrape(t *testing.T, address string) string {
	t.Helper()
	resp, err := http.Get("http://" + address + "/metrics")
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return string(text)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	return l.Addr().String()
}
