package httpapi

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"likectl/pkg/auth"
	"likectl/pkg/likes"
)

// watched is a service that looks at the span of the calls it gets.
type watched struct {
	likes.Service
	inside trace.SpanContext
}

func (s *watched) Apply(ctx context.Context, ms []likes.Mutation) []likes.Result {
	s.inside = trace.SpanContextFromContext(ctx)
	return s.Service.Apply(ctx, ms)
}

func TestTraces_EveryRequestHasOneSpan(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(spans))
	var service *watched
	f := newFixture(t, func(c *Config) {
		service = &watched{Service: c.Service}
		c.Service, c.Tracer = service, provider.Tracer("test")
	})
	one := func() tracetest.SpanStub {
		defer spans.Reset()
		require.Len(t, spans.GetSpans(), 1)
		return spans.GetSpans()[0]
	}
	user := f.token(1, auth.User)
	f.like("POST", 1, "7")
	span := one()
	require.Equal(t, "POST /v1/like", span.Name)
	require.Equal(t, codes.Unset, span.Status.Code)
	require.Equal(t, span.SpanContext.SpanID(), service.inside.SpanID(), "the service sees it")
	require.False(t, span.Parent.IsValid())

	f.do(f.request("POST", "/v1/like", "{", user))
	require.Equal(t, codes.Unset, one().Status.Code, "the client's mistake is no error of ours")
	f.do(f.request("GET", "/4711/4711", "", ""))
	require.Equal(t, "other", one().Name, "what somebody asks for is not the name of a span")
	f.do(f.request("PROPFIND", "/v1/like", "", ""))
	require.Contains(t, one().Attributes, attribute.String("http.request.method", "_OTHER"))

	f.service.fault = func(int) error { return likes.ErrUnavailable }
	f.do(f.request("POST", "/v1/like", goodLike, user, "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"))
	span = one()
	require.Equal(t, codes.Error, span.Status.Code)
	require.Equal(t, "b7ad6b7169203331", span.Parent.SpanID().String())
	require.Contains(t, f.log.String(), "trace_id=0af7651916cd43dd8448eb211c80319c", "the log leads to the trace")
	f.service.fault = nil

	f.do(f.request("POST", "/v1/like", goodLike, user, "Traceparent", "00-zz-b7ad6b7169203331-01"))
	require.False(t, one().Parent.IsValid(), "one that is malformed begins a trace of its own")
}
