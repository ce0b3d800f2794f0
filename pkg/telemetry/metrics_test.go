package telemetry_test

import (
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/reconcile"
	"likectl/pkg/store"
	"likectl/pkg/telemetry"
)

func TestScrapeShowsWhatHappened(t *testing.T) {
	m := telemetry.New()
	m.Request("POST /v1/like", 200, 49*time.Millisecond)
	m.Flushed("write", 64, time.Millisecond, nil)
	m.Flushed("write", 1, time.Second, likes.Errorf(likes.ErrUncertain, "lost the connection"))
	m.Forgot(12, time.Second, nil)
	m.Forgot(0, time.Second, likes.Errorf(likes.ErrUnavailable, "away"))
	m.KeysRead("auth.keys[0]", nil)
	m.KeysRead("auth.keys[1]", errors.New("no answer"))
	m.Bucket("unlike")
	m.RateLimited("like")
	m.Answered(
		[]likes.Mutation{like(likes.Likes, likes.Set), like(likes.Likes, likes.Set), like(likes.Likes, likes.Set), like(likes.Saves, likes.Clear), like(likes.Views, likes.Add)},
		[]likes.Result{{Outcome: likes.Changed}, {Outcome: likes.Unchanged}, {Err: likes.Errorf(likes.ErrErased, "gone")}, {Outcome: likes.Changed}, {Outcome: likes.Unchanged}})
	m.Gauge("likectl_queued_operations", "Operations that wait for a transaction.", func() float64 { return 7 })
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	text := rec.Body.String()
	for _, line := range []string{
		`likectl_http_request_duration_seconds_bucket{route="POST /v1/like",status="200",le="0.05"} 1`,
		`likectl_http_request_duration_seconds_bucket{route="POST /v1/like",status="200",le="0.03"} 0`,
		`likectl_commit_operations_bucket{kind="write",le="64"} 2`,
		`likectl_commit_failures_total{kind="write",reason="uncertain"} 1`,
		`likectl_commit_failures_total{kind="replay",reason="unavailable"} 0`,
		`likectl_commit_failures_total{kind="forget",reason="unavailable"} 1`,
		`likectl_events_forgotten_total 12`,
		`likectl_auth_key_reads_total{result="ok",source="auth.keys[0]"} 1`,
		`likectl_auth_key_reads_total{result="failed",source="auth.keys[1]"} 1`,
		`likectl_rate_limited_total{bucket="like"} 1`,
		`likectl_rate_limited_total{bucket="unlike"} 0`,
		`likectl_queued_operations 7`,
		`likectl_operations_total{operation="like",outcome="changed"} 1`,
		`likectl_operations_total{operation="like",outcome="unchanged"} 1`,
		`likectl_operations_total{operation="like",outcome="refused"} 1`,
		`likectl_operations_total{operation="unsave",outcome="changed"} 1`,
		`likectl_operations_total{operation="view",outcome="unchanged"} 1`,
		`likectl_operations_total{operation="share",outcome="changed"} 0`,
		`likectl_build_info{go="go1.`,
	} {
		require.Contains(t, text, line)
	}
	problems, err := promlint.New(rec.Result().Body).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
}

func like(c likes.Counter, op likes.Op) likes.Mutation {
	return likes.Mutation{Op: op, Edge: likes.Edge{Counter: c, Item: likes.Item{Type: 1, ID: 1}, User: 1}}
}

func TestDrift(t *testing.T) {
	m := telemetry.New()
	require.Contains(t, scrape(m), `likectl_drift_found_total{cause="missing"} 0`)
	found := func(stored, edges int64, missing, repaired bool) {
		m.Drifted(reconcile.Found{Drift: store.Drift{Stored: stored, Edges: edges, Missing: missing}, Repaired: repaired})
	}
	found(0, 3, true, true)
	found(9, 2, false, false)
	found(-4, 2, false, true)
	sum := reconcile.Summary{Checked: 300, Drifted: 3, Repaired: 2, Magnitude: 16}
	m.Reconciled(reconcile.Config{}, sum, nil)
	text := scrape(m)
	for _, line := range []string{
		`likectl_drift_found_total{cause="missing"} 1`, `likectl_drift_found_total{cause="excess"} 1`, `likectl_drift_found_total{cause="deficit"} 1`,
		"likectl_drift_likes_total 16", "likectl_drift_repaired_total 2", "likectl_reconcile_checked_total 300",
		"likectl_drift_ratio 0.01", "likectl_drift_left 1", "likectl_drift_age_seconds +Inf",
	} {
		require.Contains(t, text, line+"\n")
	}
	require.NotContains(t, text, "likectl_reconcile_last_end_timestamp_seconds 0\n")

	// Walks over some counters, and those that broke off, say nothing of all.
	m.Reconciled(reconcile.Config{Keys: make([]store.Key, 1)}, reconcile.Summary{Checked: 1}, nil)
	m.Reconciled(reconcile.Config{}, reconcile.Summary{Checked: 1}, errors.New("away"))
	text = scrape(m)
	require.Contains(t, text, "likectl_reconcile_checked_total 302\n")
	require.Contains(t, text, "likectl_drift_left 1\n")

	m.Reconciled(reconcile.Config{RightAt: time.Now().Add(-time.Hour)}, sum, nil)
	require.Regexp(t, "likectl_drift_age_seconds 3600\\.", scrape(m))
	m.Reconciled(reconcile.Config{RightAt: time.Now().Add(-time.Hour)}, reconcile.Summary{Checked: 300}, nil)
	require.Contains(t, scrape(m), "likectl_drift_age_seconds 0\n")
}

func scrape(m *telemetry.Metrics) string {
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	return rec.Body.String()
}
