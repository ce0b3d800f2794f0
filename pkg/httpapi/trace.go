package httpapi

import (
	"context"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// startSpan begins the span of a request, as part of the trace that its
// traceparent names (https://www.w3.org/TR/trace-context/). It has what a route is
// called and nothing of what was asked: no id, no query, no address. The names are
// OpenTelemetry's for HTTP.
func (a *API) startSpan(ctx context.Context, r *http.Request, route string) (context.Context, trace.Span) {
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
	attributes := []attribute.KeyValue{attribute.String("http.request.method", method(r.Method))}
	if _, path, known := strings.Cut(route, " "); known {
		attributes = append(attributes, attribute.String("http.route", path))
	}
	return a.cfg.Tracer.Start(ctx, route, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attributes...))
}

// endSpan ends the span of a request, which the log has under its id.
func (c *call) endSpan(span trace.Span) {
	span.SetAttributes(attribute.Int("http.response.status_code", c.status), attribute.String("likectl.request_id", c.id))
	if c.status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// method is a method as spans have it: those that nobody knows are one.
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodPatch:
		return m
	default:
		return "_OTHER"
	}
}
