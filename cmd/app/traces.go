package app

import (
	"context"

	"likectl/pkg/telemetry"
	"likectl/pkg/tracing"
)

// openTraces begins to send traces if the configuration says where to; without,
// it returns nil and requests know nothing of traces.
func (s *Server) openTraces(ctx context.Context) (*tracing.Tracing, error) {
	c, on := s.cfg.Telemetry.Tracing(telemetry.ReadBuild().Version, s.log)
	if !on {
		return nil, nil //nolint:nilnil // off is no error
	}
	t, err := tracing.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	s.opened.Push("traces", t.Close)
	return t, nil
}
