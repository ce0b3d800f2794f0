// Package telemetry is the service as Prometheus sees it. No label names an item
// or a user: their number has no bound.
package telemetry

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"likectl/pkg/likes"
)

// latencyBuckets, in seconds, contain the goals and alert thresholds of the
// service (writes 50 and 100 ms, reads 20 and 50 ms, batches 15 ms), so that
// the share of requests within a goal is exact and not interpolated.
var latencyBuckets = []float64{.0005, .001, .002, .003, .005, .01, .015, .02, .03, .05, .1, .2, .5, 1, 2.5, 5}

// Metrics holds the instruments of one process. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	requests *prometheus.HistogramVec
	flushes  *prometheus.HistogramVec
	batches  *prometheus.HistogramVec
	failed   *prometheus.CounterVec
	events   prometheus.Counter
	keys     *prometheus.CounterVec
	limited  *prometheus.CounterVec
	abuse    abuseMetrics

	operations *operations
	drift      *drift
}

// New returns the instruments on a registry of their own.
func New() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "likectl_http_request_duration_seconds", Help: "Time to answer a request, by route and status.", Buckets: latencyBuckets,
		}, []string{"route", "status"}),
		flushes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "likectl_commit_duration_seconds", Help: "Time of one durable transaction.", Buckets: latencyBuckets,
		}, []string{"kind"}),
		batches: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "likectl_commit_operations", Help: "Operations that shared one durable transaction.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 11),
		}, []string{"kind"}),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "likectl_commit_failures_total", Help: "Transactions that failed: nothing applied, or uncertain.",
		}, []string{"kind", "reason"}),
		events: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "likectl_events_forgotten_total", Help: "Events of tallies forgotten after their retention.",
		}),
		keys: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "likectl_auth_key_reads_total", Help: "Readings of the sources of token keys, by entry of auth.keys.",
		}, []string{"source", "result"}),
		limited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "likectl_rate_limited_total", Help: "Calls refused with 429, by the bucket of limits that was used up.",
		}, []string{"bucket"}),
	}
	m.registry.MustRegister(m.requests, m.flushes, m.batches, m.failed, m.events, m.keys, m.limited,
		buildInfo(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.operations, m.drift = newOperations(m.registry), newDrift(m.registry)
	for _, kind := range []string{"write", "replay", "add", "forget"} { // so that the first failure is an increase
		for _, reason := range []string{"unavailable", "uncertain", "other"} {
			m.failed.WithLabelValues(kind, reason)
		}
	}
	return m
}

// Request records an answered request; route is a pattern of the API, not a path.
func (m *Metrics) Request(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Observe(took.Seconds())
}

// Flushed records a transaction of n mutations: issued operations, replays, or
// adds to tallies.
func (m *Metrics) Flushed(kind string, n int, took time.Duration, err error) {
	m.flushes.WithLabelValues(kind).Observe(took.Seconds())
	m.batches.WithLabelValues(kind).Observe(float64(n))
	m.fail(kind, err)
}

// Forgot records a step that forgot n events of tallies.
func (m *Metrics) Forgot(n int, _ time.Duration, err error) {
	m.events.Add(float64(n))
	m.fail("forget", err)
}

func (m *Metrics) fail(kind string, err error) {
	switch {
	case err == nil:
	case errors.Is(err, likes.ErrUnavailable):
		m.failed.WithLabelValues(kind, "unavailable").Inc()
	case errors.Is(err, likes.ErrUncertain):
		m.failed.WithLabelValues(kind, "uncertain").Inc()
	default:
		m.failed.WithLabelValues(kind, "other").Inc()
	}
}

// KeysRead records a reading of a source of token keys, an entry of auth.keys.
func (m *Metrics) KeysRead(source string, err error) {
	result := "ok"
	if err != nil {
		result = "failed"
	}
	m.keys.WithLabelValues(source, result).Inc()
}

// Bucket shows a bucket of limits from its first moment on, so that the first
// refusal is an increase.
func (m *Metrics) Bucket(name string) { m.limited.WithLabelValues(name) }

// RateLimited records a call that a bucket of limits refused.
func (m *Metrics) RateLimited(bucket string) { m.limited.WithLabelValues(bucket).Inc() }

// Gauge registers a value that is read when it is scraped.
func (m *Metrics) Gauge(name, help string, read func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
}

// Handler serves the metrics in the Prometheus formats.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}
