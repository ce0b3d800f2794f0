package app_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"likectl/cmd/app"
	"likectl/pkg/auth"
	"likectl/pkg/config"
	"likectl/pkg/datadir"
)

// A request of a served API reaches the collector as part of its caller's trace,
// with the wait for its turn and the transaction below it, and without its user.
func TestServer_SendsTraces(t *testing.T) {
	var mu sync.Mutex
	var raw bytes.Buffer
	spans := map[string]*tracepb.Span{}
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		raw.Write(body)
		var data tracepb.TracesData
		if proto.Unmarshal(body, &data) != nil {
			return
		}
		for _, rs := range data.GetResourceSpans() {
			for _, ss := range rs.GetScopeSpans() {
				for _, s := range ss.GetSpans() {
					spans[s.GetName()] = s
				}
			}
		}
	}))
	defer collector.Close()

	cfg := config.Default()
	cfg.Data, cfg.Listen, cfg.AdminListen = t.TempDir(), "127.0.0.1:0", "127.0.0.1:0"
	cfg.Telemetry = config.Telemetry{OTLPEndpoint: collector.URL, SampleRatio: 1e-9} // the caller decides
	server, err := app.Open(t.Context(), cfg, slog.New(slog.DiscardHandler), false)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()

	secret, err := datadir.LoadSecret(cfg.Data)
	require.NoError(t, err)
	tokens, err := auth.New(auth.Default(secret))
	require.NoError(t, err)
	const user, item = "4711471147114711471", "8154815481548154"
	token, err := tokens.Mint(4711471147114711471, auth.User, time.Hour)
	require.NoError(t, err)
	const traceID, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+server.Addr()+"/v1/like",
		strings.NewReader(`{"item_id":"`+item+`","item_type":"post"}`))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Traceparent", "00-"+traceID+"-"+parent+"-01")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	http.DefaultClient.CloseIdleConnections()
	stop()
	require.NoError(t, <-ended) // which sends what waits

	mu.Lock()
	defer mu.Unlock()
	require.Len(t, spans, 3)
	root := spans["POST /v1/like"]
	require.Equal(t, traceID, hex.EncodeToString(root.GetTraceId()))
	require.Equal(t, parent, hex.EncodeToString(root.GetParentSpanId()))
	require.Equal(t, tracepb.Span_SPAN_KIND_SERVER, root.GetKind())
	attributes := map[string]any{}
	for _, a := range root.GetAttributes() {
		if attributes[a.GetKey()] = a.GetValue().GetStringValue(); a.GetValue().GetStringValue() == "" {
			attributes[a.GetKey()] = a.GetValue().GetIntValue()
		}
	}
	require.Equal(t, map[string]any{
		"http.request.method": "POST", "http.route": "/v1/like", "http.response.status_code": int64(200),
		"likectl.request_id": resp.Header.Get("X-Request-Id"),
	}, attributes)
	for _, name := range []string{"queue", "transaction"} {
		s := spans[name]
		require.NotNil(t, s, name)
		require.Equal(t, root.GetSpanId(), s.GetParentSpanId(), name)
		require.LessOrEqual(t, root.GetStartTimeUnixNano(), s.GetStartTimeUnixNano(), name)
		require.GreaterOrEqual(t, root.GetEndTimeUnixNano(), s.GetEndTimeUnixNano(), name)
	}
	for _, secret := range []string{user, item, token} {
		require.NotContains(t, raw.String(), secret)
	}
}
