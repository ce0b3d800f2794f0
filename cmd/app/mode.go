package app

import (
	"context"

	"likectl/pkg/httpapi"
	"likectl/pkg/telemetry"
)

// The modes of operation that tier 1 knows. It serves in full or, without its
// database, not at all.
const (
	modeNormal     = 1
	modeNoDatabase = 4
)

// showMode shows in which mode the process serves.
func showMode(ctx context.Context, health *httpapi.Health, metrics *telemetry.Metrics) {
	metrics.Gauge("likectl_mode", "Mode of operation: 1 is normal; 4 is without the database, everything that needs it is refused.", func() float64 {
		if health.Ready(ctx) {
			return modeNormal
		}
		return modeNoDatabase
	})
}
