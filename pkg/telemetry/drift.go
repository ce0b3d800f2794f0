package telemetry

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"likectl/pkg/reconcile"
)

// drift is what reconciles in this process have found. Those of other instances
// and of commands that open the store themselves are not in it.
type drift struct {
	checked, repaired, magnitude prometheus.Counter
	found                        *prometheus.CounterVec

	// Of the last walk over all counters that reached its end.
	ended, ratio, left, age prometheus.Gauge
}

func newDrift(r prometheus.Registerer) *drift {
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		r.MustRegister(c)
		return c
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
		r.MustRegister(g)
		return g
	}
	d := &drift{
		checked:   counter("likectl_reconcile_checked_total", "Counters compared with their edges."),
		repaired:  counter("likectl_drift_repaired_total", "Counters that differed from their edges and were repaired."),
		magnitude: counter("likectl_drift_likes_total", "By how many likes counters differed from their edges, in sum and without the sign."),
		found: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "likectl_drift_found_total", Help: "Counters that differed from their edges, by what is known of the cause.",
		}, []string{"cause"}),
		ended: gauge("likectl_reconcile_last_end_timestamp_seconds", "When the last complete comparison of all counters ended; 0 before the first."),
		ratio: gauge("likectl_drift_ratio", "Share of all counters that differed in the last complete comparison."),
		left:  gauge("likectl_drift_left", "Counters that the last complete comparison left as they were, different."),
		age: gauge("likectl_drift_age_seconds", "How old the drift of the last complete comparison was at most; 0 without drift, "+
			"+Inf if it is not known."),
	}
	r.MustRegister(d.found)
	for _, cause := range reconcile.Causes() {
		d.found.WithLabelValues(cause)
	}
	return d
}

// Drifted records a counter that differed from its edges.
func (m *Metrics) Drifted(f reconcile.Found) {
	m.drift.found.WithLabelValues(f.Cause()).Inc()
	m.drift.magnitude.Add(math.Abs(float64(f.Difference())))
	if f.Repaired {
		m.drift.repaired.Inc()
	}
}

// Reconciled records a walk that has ended, with how it was configured.
func (m *Metrics) Reconciled(c reconcile.Config, sum reconcile.Summary, err error) {
	m.drift.checked.Add(float64(sum.Checked))
	if err != nil || len(c.Keys) > 0 {
		return
	}
	m.drift.ended.SetToCurrentTime()
	m.drift.left.Set(float64(sum.Drifted - sum.Repaired))
	m.drift.ratio.Set(float64(sum.Drifted) / float64(max(sum.Checked, 1)))
	switch {
	case sum.Drifted == 0:
		m.drift.age.Set(0)
	case c.RightAt.IsZero():
		m.drift.age.Set(math.Inf(1))
	default:
		m.drift.age.Set(time.Since(c.RightAt).Seconds())
	}
}
