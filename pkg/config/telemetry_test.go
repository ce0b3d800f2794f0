package config

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

func TestBadTelemetryIsRefusedAndNamed(t *testing.T) {
	for yaml, want := range map[string]string{
		"{sample_ratio: 0}":                          "telemetry.sample_ratio: want above 0",
		"{sample_ratio: -0.1}":                       "telemetry.sample_ratio",
		"{sample_ratio: 1.1}":                        "telemetry.sample_ratio",
		"{sample_ratio: .nan}":                       "telemetry.sample_ratio",
		"{sample_ratio: many}":                       "telemetry.sample_ratio: want a number",
		"{otlp_endpoint: \"127.0.0.1:4318\"}":        "telemetry.otlp_endpoint",
		"{otlp_endpoint: \"grpc://c:4317\"}":         "telemetry.otlp_endpoint",
		"{otlp_endpoint: \"http://\"}":               "telemetry.otlp_endpoint",
		"{otlp_endpoint: \"http://u:hunter2@c/\"}":   "telemetry.otlp_endpoint",
		"{otlp_endpoint: \"http://c/?key=hunter2\"}": "telemetry.otlp_endpoint",
		"{endpoint: \"http://c/\"}":                  "telemetry.endpoint: there is no such key",
	} {
		_, err := Load(write(t, "telemetry: "+yaml+"\n"), nil)
		require.ErrorIs(t, err, likes.ErrInvalid, yaml)
		require.ErrorContains(t, err, want, yaml)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestTracesAreOffUnlessThereIsAnEndpoint(t *testing.T) {
	_, on := Default().Telemetry.Tracing("1", nil)
	require.False(t, on)
	t.Setenv("LIKECTL_TELEMETRY_OTLP_ENDPOINT", "https://collector.example/otlp")
	t.Setenv("LIKECTL_TELEMETRY_SAMPLE_RATIO", "0.25")
	got, err := Load("", nil)
	require.NoError(t, err)
	c, on := got.Telemetry.Tracing("1.2.3", slog.Default())
	require.True(t, on)
	require.Equal(t, "https://collector.example/otlp", c.Endpoint)
	require.InDelta(t, 0.25, c.Ratio, 0)
	require.Equal(t, "1.2.3", c.Version)
}
