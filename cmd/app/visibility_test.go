package app_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/cmd/app"
	"likectl/cmd/cli"
	"likectl/pkg/config"
)

// A served API asks the configured authorizer, and shows nothing while it is away.
func TestServer_AsksTheConfiguredAuthorizer(t *testing.T) {
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		decision := `{"visible":false}`
		if strings.Contains(string(body), `{"item_id":"1","item_type":"post"}`) {
			decision = `{"visible":true,"counts":"hidden"}`
		}
		_, _ = io.WriteString(w, `{"decisions":[`+decision+`]}`)
	}))
	t.Cleanup(outside.Close)
	cfg := config.Default()
	cfg.Data, cfg.Listen, cfg.AdminListen = filepath.Join(t.TempDir(), "data"), "127.0.0.1:0", "127.0.0.1:0"
	cfg.Visibility.Authorizer.URL = outside.URL
	cfg.Visibility.Cache = time.Nanosecond
	server, err := app.Open(t.Context(), cfg, slog.New(slog.DiscardHandler), false)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	count := func(item string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+server.Addr()+"/v1/count?item_type=post&item_id="+item, nil)
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode, string(body)
	}
	status, body := count("1")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, `"hidden":true`)
	status, _ = count("2")
	require.Equal(t, http.StatusNotFound, status)
	outside.Close()
	for _, item := range []string{"1", "2"} {
		status, body = count(item)
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Contains(t, body, `"error":"unavailable"`)
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
	require.NoError(t, <-ended)

	cfg.Visibility.Authorizer.TokenFile = filepath.Join(t.TempDir(), "none")
	_, err = app.Open(t.Context(), cfg, slog.New(slog.DiscardHandler), false)
	require.Equal(t, cli.Usage, cli.CodeOf(err))
	require.ErrorContains(t, err, "visibility.authorizer.token_file")
}
