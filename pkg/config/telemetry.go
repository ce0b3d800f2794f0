package config

import (
	"log/slog"

	"likectl/pkg/tracing"
)

// check tells report every key that is wrong. The ratio is wrong without an endpoint,
// too: a mistake must not wait for it.
func (t Telemetry) check(report func(ok bool, key, want string)) {
	report(t.SampleRatio > 0 && t.SampleRatio <= 1, "telemetry.sample_ratio", "want above 0 and at most 1")
	if t.OTLPEndpoint == "" {
		return
	}
	c := tracing.Config{Endpoint: t.OTLPEndpoint, Ratio: 1}
	report(c.Check() == nil, "telemetry.otlp_endpoint", "want a URL such as http://127.0.0.1:4318, or nothing")
}

// Tracing returns the configuration of traces, and whether there are any.
func (t Telemetry) Tracing(version string, log *slog.Logger) (tracing.Config, bool) {
	return tracing.Config{Endpoint: t.OTLPEndpoint, Ratio: t.SampleRatio, Version: version, Logger: log}, t.OTLPEndpoint != ""
}
