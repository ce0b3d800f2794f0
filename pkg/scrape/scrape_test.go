package scrape

import (
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"likectl/pkg/likes"
	"likectl/pkg/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server serves the metrics that at points to.
func server(t *testing.T, at *atomic.Pointer[telemetry.Metrics]) *Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { at.Load().Handler().ServeHTTP(w, r) }))
	c := NewClient(s.URL)
	t.Cleanup(func() { c.Close(); s.Close() })
	return c
}

func read(t *testing.T, c *Client) *Reading {
	t.Helper()
	r, err := c.Read(t.Context())
	require.NoError(t, err)
	return r
}

func newMetrics(queue float64) *telemetry.Metrics {
	m := telemetry.New()
	m.Gauge("likectl_queued_operations", "Operations that wait for a transaction.", func() float64 { return queue })
	return m
}

func TestViewBetweenTwoReadings(t *testing.T) {
	var at atomic.Pointer[telemetry.Metrics]
	m := newMetrics(7)
	at.Store(m)
	c := server(t, &at)
	m.Request("POST /v1/like", 200, time.Second) // before the first reading: not in the view
	m.Flushed("write", 500, time.Second, nil)
	old := read(t, c)

	for range 98 {
		m.Request("POST /v1/like", 200, 1500*time.Microsecond)
	}
	m.Request("DELETE /v1/like", 503, 40*time.Millisecond)
	m.Request("POST /v1/likes:batch", 400, 40*time.Millisecond)
	m.Request("GET /v1/count", 200, 700*time.Microsecond)
	m.Request("POST /v1/has_liked", 200, 700*time.Microsecond)
	m.Flushed("write", 60, 4*time.Millisecond, nil)
	m.Flushed("write", 20, 4*time.Millisecond, likes.Errorf(likes.ErrUncertain, "lost"))
	m.Flushed("replay", 100, 4*time.Millisecond, nil)
	now := read(t, c)
	now.at = old.at.Add(2 * time.Second)

	v := Between(old, now)
	require.InDelta(t, 40, v.Likes, 0.001)
	require.InDelta(t, 50, v.Replays, 0.001)
	require.InDelta(t, 50, v.Writes, 0.001)
	require.InDelta(t, 1, v.Reads, 0.001)
	require.InDelta(t, 0.5, v.Errors, 0.001)
	require.InDelta(t, 0.5, v.Refused, 0.001)
	require.InDelta(t, 1.5, v.Commits, 0.001)
	require.InDelta(t, 60, *v.Batch, 0.001)
	require.InDelta(t, 0.5, v.FailedCommits, 0.001)
	require.InDelta(t, 7, v.Queued, 0.001)
	// Half of the 98 writes between 1 and 2 ms are below 1.5; the 99th of 100 is
	// the first of two between 30 and 50.
	require.InDelta(t, 1.51, *v.WriteLatency.P50, 0.011)
	require.InDelta(t, 40, *v.WriteLatency.P99, 0.001)
	require.InDelta(t, 0.75, *v.ReadLatency.P50, 0.001)
}

func TestNothingHappened(t *testing.T) {
	var at atomic.Pointer[telemetry.Metrics]
	at.Store(newMetrics(0))
	c := server(t, &at)
	v := Between(read(t, c), read(t, c))
	require.Zero(t, v.Writes)
	require.Nil(t, v.WriteLatency.P99)
	require.Nil(t, v.Batch)
	_, err := json.Marshal(v)
	require.NoError(t, err)
}

func TestAServerThatWasStartedAnewHasNoNegativeRates(t *testing.T) {
	var at atomic.Pointer[telemetry.Metrics]
	m := newMetrics(0)
	at.Store(m)
	c := server(t, &at)
	for range 100 {
		m.Request("POST /v1/like", 200, time.Millisecond)
		m.Flushed("write", 10, time.Millisecond, likes.Errorf(likes.ErrUnavailable, "away"))
	}
	old := read(t, c)
	m = newMetrics(0)
	at.Store(m)
	m.Request("POST /v1/like", 200, time.Millisecond)
	m.Flushed("write", 10, time.Millisecond, likes.Errorf(likes.ErrUnavailable, "away"))
	now := read(t, c)
	now.at = old.at.Add(time.Second)
	v := Between(old, now)
	require.InDelta(t, 1, v.Writes, 0.001)
	require.InDelta(t, 10, v.Likes, 0.001)
	require.InDelta(t, 1, v.FailedCommits, 0.001)
}

func TestQuantiles(t *testing.T) {
	require.True(t, math.IsNaN(histogram{}.quantile(0.5)))
	h := histogram{count: 4, buckets: map[float64]float64{1: 0, 2: 2, 4: 3, math.Inf(1): 4}}
	for q, want := range map[float64]float64{0.25: 1.5, 0.5: 2, 0.75: 4, 1: 4} {
		require.InDelta(t, want, h.quantile(q), 1e-9, q)
	}
}

func TestOtherServersAreRefused(t *testing.T) {
	for body, want := range map[string]string{
		"up 1\n":             "no metrics of likectl",
		"<html>hello":        "read the metrics",
		"a{b=\"c\"} seven\n": "read the metrics",
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			_, _ = w.Write([]byte(body))
		}))
		c := NewClient(s.URL)
		_, err := c.Read(t.Context())
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, likes.ErrUnavailable)
		c.Close()
		s.Close()
		_, err = c.Read(t.Context())
		require.ErrorIs(t, err, likes.ErrUnavailable)
		c.Close()
	}
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	c := NewClient(s.URL)
	defer c.Close()
	_, err := c.Read(t.Context())
	require.ErrorContains(t, err, "404")
}
