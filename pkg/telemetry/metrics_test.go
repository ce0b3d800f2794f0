package telemetry_test

import (
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
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
		`likectl_build_info{go="go1.`,
	} {
		require.Contains(t, text, line)
	}
	problems, err := promlint.New(rec.Result().Body).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
}
