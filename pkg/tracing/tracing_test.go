package tracing_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"likectl/pkg/batch"
	"likectl/pkg/likes"
	"likectl/pkg/tracing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collector takes spans by OTLP/HTTP as a real one does.
type collector struct {
	tb    testing.TB
	url   string
	mu    sync.Mutex
	spans []*tracepb.Span
	by    map[string]string // attributes of the sender
}

func newCollector(tb testing.TB) *collector {
	c := &collector{tb: tb, by: map[string]string{}}
	srv := httptest.NewServer(http.HandlerFunc(c.take))
	tb.Cleanup(srv.Close)
	c.url = srv.URL
	return c
}

func (c *collector) take(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var data tracepb.TracesData
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" ||
		proto.Unmarshal(body, &data) != nil {
		http.Error(w, "not OTLP", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range data.GetResourceSpans() {
		for _, a := range rs.GetResource().GetAttributes() {
			c.by[a.GetKey()] = a.GetValue().GetStringValue()
		}
		for _, ss := range rs.GetScopeSpans() {
			c.spans = append(c.spans, ss.GetSpans()...)
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func open(tb testing.TB, url string, ratio float64, log io.Writer) *tracing.Tracing {
	tb.Helper()
	tr, err := tracing.Open(tb.Context(), tracing.Config{
		Endpoint: url, Ratio: ratio, Version: "1.2.3", Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	require.NoError(tb, err)
	return tr
}

func TestTracing_ACallHasWhatItWaitedFor(t *testing.T) {
	c := newCollector(t)
	tr := open(t, c.url, 1, io.Discard)
	ctx, span := tr.Tracer().Start(t.Context(), "POST /v1/like")
	queued := time.Now().Add(-time.Second).Truncate(time.Microsecond)
	began, ended := queued.Add(100*time.Millisecond), queued.Add(400*time.Millisecond)
	tr.Waited(ctx, "write", queued, batch.Flight{Lane: 1, Ops: 7, Began: began, Ended: ended})
	tr.Waited(ctx, "write", queued, batch.Flight{Began: began, Ended: ended, Err: errors.New("user 4711 has no rows")})
	span.End()
	tr.Waited(t.Context(), "write", queued, batch.Flight{}) // a call that is not traced
	require.NoError(t, tr.Close(t.Context()))

	require.Equal(t, "likectl", c.by["service.name"])
	require.Equal(t, "1.2.3", c.by["service.version"])
	require.Len(t, c.spans, 5)
	queue, commit, failed, parent := c.spans[0], c.spans[1], c.spans[3], c.spans[4]
	require.Equal(t, "POST /v1/like", parent.GetName())
	for _, s := range c.spans[:4] {
		require.Equal(t, parent.GetTraceId(), s.GetTraceId())
		require.Equal(t, parent.GetSpanId(), s.GetParentSpanId())
	}
	at := func(t time.Time) uint64 { return uint64(t.UnixNano()) }
	require.Equal(t, "queue", queue.GetName())
	require.Equal(t, at(queued), queue.GetStartTimeUnixNano())
	require.Equal(t, at(began), queue.GetEndTimeUnixNano())
	require.Equal(t, "transaction", commit.GetName())
	require.Equal(t, at(began), commit.GetStartTimeUnixNano())
	require.Equal(t, at(ended), commit.GetEndTimeUnixNano())
	require.Contains(t, commit.String(), "likectl.operations")
	require.Equal(t, tracepb.Status_STATUS_CODE_UNSET, commit.GetStatus().GetCode())
	require.Equal(t, tracepb.Status_STATUS_CODE_ERROR, failed.GetStatus().GetCode())
	require.NotContains(t, failed.String(), "4711")
}

func TestTracing_TheRatioIsOfThoseWhoAreInNoTraceYet(t *testing.T) {
	c := newCollector(t)
	tr := open(t, c.url, 0.25, io.Discard)
	const n = 2000 // within the queue
	for range n {
		_, span := tr.Tracer().Start(t.Context(), "own")
		span.End()
	}
	for _, flags := range []trace.TraceFlags{trace.FlagsSampled, 0} {
		parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{9}, SpanID: trace.SpanID{9}, TraceFlags: flags, Remote: true})
		for range 10 {
			_, span := tr.Tracer().Start(trace.ContextWithRemoteSpanContext(t.Context(), parent), "part")
			span.End()
		}
	}
	require.NoError(t, tr.Close(t.Context()))
	own, part := 0, 0
	for _, s := range c.spans {
		switch s.GetName() {
		case "own":
			own++
		case "part":
			part++
		}
	}
	require.Equal(t, 10, part)
	require.InDelta(t, n/4, own, 120, "six standard deviations")
}

func TestTracing_ACollectorThatIsAwayOrRefusesDisturbsNobody(t *testing.T) {
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer refuses.Close()
	for url, want := range map[string]string{"http://127.0.0.1:1": "refused", refuses.URL: "503 Service Unavailable"} {
		var log bytes.Buffer
		tr := open(t, url, 1, &log)
		for range 3 {
			_, span := tr.Tracer().Start(t.Context(), "x")
			span.End()
		}
		require.NoError(t, tr.Close(t.Context()))
		require.Contains(t, log.String(), want)
		require.Contains(t, log.String(), "spans_lost=3")
		require.Equal(t, 1, strings.Count(log.String(), "\n"))
	}
}

func TestTracing_RefusesWhatCannotBe(t *testing.T) {
	for _, c := range []tracing.Config{
		{Endpoint: "", Ratio: 1},
		{Endpoint: "collector:4318", Ratio: 1},
		{Endpoint: "http://a", Ratio: 0},
		{Endpoint: "http://a", Ratio: 2},
	} {
		_, err := tracing.Open(context.Background(), c)
		require.ErrorIs(t, err, likes.ErrInvalid)
	}
}
