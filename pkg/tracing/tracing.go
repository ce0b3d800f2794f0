// Package tracing sends what requests did, and for how long, to a collector of
// traces, in OpenTelemetry's protocol over HTTP (OTLP/HTTP 1.x,
// https://opentelemetry.io/docs/specs/otlp/#otlphttp). No span names an item or a
// user.
//
// Traces are an aid and never in the way: spans wait in a queue of 2,048, those
// beyond it and those that the collector does not take are lost, and nobody waits.
// Whoever wants none opens nothing: requests then do not know this package.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"likectl/pkg/batch"
	"likectl/pkg/likes"
)

// Config says where traces go. All is needed.
type Config struct {
	// Endpoint is the collector's URL, such as http://127.0.0.1:4318. Without a
	// path it is /v1/traces.
	Endpoint string
	// Ratio is the share of requests that are traced, above 0 and at most 1. Of
	// requests that are part of a trace already, its sender has decided.
	Ratio float64
	// Version is this program's.
	Version string
	Logger  *slog.Logger
}

// Check returns ErrInvalid that says what is wrong with the configuration.
func (c Config) Check() error {
	u, err := url.Parse(c.Endpoint)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return likes.Errorf(likes.ErrInvalid, "endpoint: want a URL such as http://127.0.0.1:4318") // the text may hold a password
	case !(c.Ratio > 0 && c.Ratio <= 1): // not a number, too
		return likes.Errorf(likes.ErrInvalid, "ratio %v, want above 0 and at most 1", c.Ratio)
	default:
		return nil
	}
}

// Tracing sends traces until Close.
type Tracing struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// Open returns what sends traces. It asks the collector nothing: one that comes
// later gets what is traced then.
func Open(ctx context.Context, c Config) (*Tracing, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	client := newClient(c)
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("open traces: %w", err)
	}
	// The environment comes last: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES
	// are how platforms name what they run.
	res, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "likectl"), attribute.String("service.version", c.Version)),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("open traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	provider := sdk.NewTracerProvider(
		sdk.WithResource(res), sdk.WithBatcher(exporter),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(c.Ratio))),
	)
	return &Tracing{provider: provider, tracer: provider.Tracer("likectl")}, nil
}

// Tracer makes the spans of requests.
func (t *Tracing) Tracer() trace.Tracer { return t.tracer }

// Close sends what waits and ends, or loses it when the context ends.
func (t *Tracing) Close(ctx context.Context) error {
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("close traces: %w", err)
	}
	return nil
}

// Waited adds to a traced call what it waited for: its turn, and the transaction of
// a kind that it shared with others.
func (t *Tracing) Waited(ctx context.Context, kind string, queued time.Time, f batch.Flight) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return
	}
	_, wait := t.tracer.Start(ctx, "queue", trace.WithTimestamp(queued))
	wait.End(trace.WithTimestamp(f.Began))
	_, commit := t.tracer.Start(ctx, "transaction", trace.WithTimestamp(f.Began), trace.WithAttributes(
		attribute.String("likectl.kind", kind), attribute.Int("likectl.lane", f.Lane), attribute.Int("likectl.operations", f.Ops)))
	if f.Err != nil {
		commit.SetStatus(codes.Error, "") // why is in the log: it may name a user
	}
	commit.End(trace.WithTimestamp(f.Ended))
}
