package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/httpapi"
	"likectl/pkg/telemetry"
)

func TestModeFollowsTheProbes(t *testing.T) {
	for want, err := range map[string]error{"likectl_mode 1\n": nil, "likectl_mode 4\n": errors.New("away")} {
		probe := httpapi.Probe{Name: "postgres", Check: func(context.Context) error { return err }}
		metrics := telemetry.New()
		showMode(t.Context(), httpapi.NewHealth(slog.New(slog.DiscardHandler), probe), metrics)
		rec := httptest.NewRecorder()
		metrics.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
		require.Contains(t, rec.Body.String(), want)
	}
}
