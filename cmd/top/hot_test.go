package top

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/cmd/app"
	"likectl/cmd/cli"
	"likectl/pkg/auth"
	"likectl/pkg/config"
	"likectl/pkg/datadir"
)

// start runs a whole embedded server until the test ends.
func start(t *testing.T) config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.Data = t.TempDir()
	cfg.Listen, cfg.AdminListen = freeAddress(t), freeAddress(t)
	s, err := app.Open(t.Context(), cfg, app.Quiet(), false)
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(t.Context()) }() // which ends before clean-ups run
	t.Cleanup(func() { require.NoError(t, <-served) })
	return cfg
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	return l.Addr().String()
}

// likeMany has users like an item in one call.
func likeMany(t *testing.T, cfg config.Config, item string, users int) {
	t.Helper()
	secret, err := datadir.LoadSecret(cfg.Data)
	require.NoError(t, err)
	tokens, err := auth.New(auth.Default(secret))
	require.NoError(t, err)
	token, err := tokens.Mint(1, auth.Service, time.Minute)
	require.NoError(t, err)
	var ops []string
	for user := range users {
		ops = append(ops, fmt.Sprintf(`{"user_id":"%d","item_id":"%s","item_type":"reel","action":"like"}`, user+1, item))
	}
	body := strings.NewReader(`{"ops":[` + strings.Join(ops, ",") + `]}`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+cfg.Listen+"/v1/likes:batch", body)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
}

// TestHotItemsOfARunningServer likes through the API and looks at the view.
func TestHotItemsOfARunningServer(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	cfg := start(t)
	likeMany(t, cfg, "77", 300)
	likeMany(t, cfg, "9223372036854775807", 10)
	o := Options{Admin: "http://" + cfg.AdminListen, Config: cfg, Once: true, Interval: minInterval, Output: cli.JSON}
	var out bytes.Buffer
	require.NoError(t, Run(t.Context(), &out, o))
	var v view
	require.NoError(t, json.Unmarshal(out.Bytes(), &v), out.String())
	require.Empty(t, v.HotError)
	require.Len(t, v.Hot, 2)
	first, second := v.Hot[0], v.Hot[1]
	require.Equal(t, []string{"likes", "reel", "77"}, []string{first.Counter, first.ItemType, first.ItemID})
	require.Equal(t, "9223372036854775807", second.ItemID)
	require.InDelta(t, 30, first.PerSecond/second.PerSecond, 10) // a second may begin between the readings
	require.Zero(t, first.Error)

	out.Reset()
	o.Output = cli.Table
	require.NoError(t, Run(t.Context(), &out, o))
	require.Regexp(t, `(?s)LIKES/S.*\n +[0-9.]+  likes  reel:77\n +[0-9.]+  likes  reel:9223372036854775807\n$`, out.String())
	require.NotContains(t, out.String(), "less")
	o.Terminal = true
	out.Reset()
	require.NoError(t, Run(t.Context(), &out, o))
	require.Contains(t, out.String(), "reel:77")

	o.Config.Data = t.TempDir()
	out.Reset()
	require.NoError(t, Run(t.Context(), &out, o))
	require.Contains(t, out.String(), "hot items: not shown: no secret in")
	require.NotContains(t, out.String(), "reel:77")
}
