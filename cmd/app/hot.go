package app

import (
	"likectl/pkg/config"
	"likectl/pkg/hot"
	"likectl/pkg/telemetry"
)

// newHot returns the tracker of what is written most often, and shows how many
// of it are above the configured threshold.
func newHot(cfg config.Config, metrics *telemetry.Metrics) (*hot.Tracker, error) {
	tracker, err := hot.New(cfg.Write.Lanes)
	if err != nil {
		return nil, err
	}
	metrics.Gauge("likectl_hot_items", "Items with more writes a second than hot.threshold, over the last 10 seconds.", func() float64 {
		return float64(tracker.Above(float64(cfg.Hot.Threshold), hot.Sudden))
	})
	return tracker, nil
}
