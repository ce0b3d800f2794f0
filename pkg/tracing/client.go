package tracing

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// client posts spans to a collector. (OpenTelemetry's own, otlptracehttp, links
// gRPC and its gateway: 9 MB of program for a POST.) It does not repeat a request:
// the next one comes within seconds, and what a trace lacks nobody is charged for.
type client struct {
	url  string
	http *http.Client
	log  *slog.Logger

	mu   sync.Mutex
	next time.Time // when a failure is logged again
	lost int       // spans, since it was
}

var _ otlptrace.Client = (*client)(nil)

const (
	// uploadTimeout bounds one request to the collector.
	uploadTimeout = 10 * time.Second
	// complainEvery is how often the log says that spans are lost.
	complainEvery = time.Minute
)

func newClient(c Config) *client {
	u, _ := url.Parse(c.Endpoint) // checked
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return &client{url: u.String(), http: &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment}, Timeout: uploadTimeout}, log: c.Logger}
}

// Start implements [otlptrace.Client].
func (c *client) Start(context.Context) error { return nil }

// Stop implements [otlptrace.Client].
func (c *client) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces implements [otlptrace.Client]. Its failures are logged here, since
// whoever calls would print them.
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// On the wire it is an ExportTraceServiceRequest: the same field with the
	// same number (opentelemetry/proto/trace/v1/trace.proto says so).
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err == nil {
		err = c.post(ctx, body)
	}
	if err != nil {
		c.complain(err, spans)
	}
	return nil
}

func (c *client) post(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("User-Agent", "likectl")
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	const most = 64 << 10 // so that the connection can be used again
	_, _ = io.CopyN(io.Discard, resp.Body, most)
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answers %s", resp.Status)
	}
	return nil
}

// complain says once a minute that spans are lost and how many.
func (c *client) complain(err error, spans []*tracepb.ResourceSpans) {
	n := 0
	for _, r := range spans {
		for _, s := range r.GetScopeSpans() {
			n += len(s.GetSpans())
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost += n
	if now := time.Now(); now.After(c.next) {
		c.log.Warn("traces not sent; requests go on without", "error", err, "spans_lost", c.lost)
		c.next, c.lost = now.Add(complainEvery), 0
	}
}
