package scrape

import (
	"math"
	"strings"
	"time"
)

// The names of the instruments, as package telemetry and the server give them.
const (
	requests   = "likectl_http_request_duration_seconds"
	operations = "likectl_commit_operations"
	commits    = "likectl_commit_duration_seconds"
	failures   = "likectl_commit_failures_total"
	queued     = "likectl_queued_operations"
)

// Latency are quantiles in milliseconds, nil without requests.
type Latency struct {
	P50 *float64 `json:"p50_ms"`
	P99 *float64 `json:"p99_ms"`
}

// View is what happened between two readings. Rates are per second.
type View struct {
	At      time.Time `json:"at"`
	Seconds float64   `json:"seconds"`
	// Likes are operations on edges that went into transactions, Replays those of
	// imports.
	Likes   float64 `json:"likes_per_s"`
	Replays float64 `json:"replays_per_s"`
	// Writes and Reads are requests to the API, whatever became of them.
	Writes       float64 `json:"writes_per_s"`
	Reads        float64 `json:"reads_per_s"`
	WriteLatency Latency `json:"write"`
	ReadLatency  Latency `json:"read"`
	// Errors are answers with a 5xx, Refused those with a 4xx.
	Errors  float64 `json:"errors_per_s"`
	Refused float64 `json:"refused_per_s"`
	// Commits are durable transactions, Batch the operations in one, nil without
	// any.
	Commits       float64  `json:"commits_per_s"`
	Batch         *float64 `json:"operations_per_commit"`
	CommitLatency Latency  `json:"commit"`
	// FailedCommits applied nothing or are uncertain.
	FailedCommits float64 `json:"failed_commits_per_s"`
	// Queued is how many operations wait now.
	Queued float64 `json:"queued"`
}

// Between returns what happened between two readings of one server.
func Between(old, now *Reading) View {
	v := View{At: now.at.UTC(), Seconds: round(now.at.Sub(old.at).Seconds())}
	period := max(now.at.Sub(old.at).Seconds(), 1e-6)
	delta := func(name string, choose func(labels) bool) histogram {
		return now.histogram(name, choose).since(old.histogram(name, choose))
	}
	rate := func(n float64) float64 { return round(n / period) }
	writes := delta(requests, func(l labels) bool { return !isRead(l["route"]) })
	reads := delta(requests, func(l labels) bool { return isRead(l["route"]) })
	v.Writes, v.WriteLatency = rate(writes.count), latency(writes)
	v.Reads, v.ReadLatency = rate(reads.count), latency(reads)
	v.Errors = rate(delta(requests, func(l labels) bool { return strings.HasPrefix(l["status"], "5") }).count)
	v.Refused = rate(delta(requests, func(l labels) bool { return strings.HasPrefix(l["status"], "4") }).count)
	v.Likes = rate(delta(operations, func(l labels) bool { return l["kind"] == "write" }).sum)
	v.Replays = rate(delta(operations, func(l labels) bool { return l["kind"] == "replay" }).sum)
	all := func(labels) bool { return true }
	batches := delta(operations, all)
	if batches.count > 0 {
		v.Batch = number(batches.sum / batches.count)
	}
	flushes := delta(commits, all)
	v.Commits, v.CommitLatency = rate(flushes.count), latency(flushes)
	failed := now.total(failures, all)
	if before := old.total(failures, all); failed >= before {
		failed -= before
	}
	v.FailedCommits = rate(failed)
	v.Queued = now.total(queued, all)
	return v
}

func latency(h histogram) Latency {
	const milliseconds = 1000
	return Latency{number(h.quantile(0.5) * milliseconds), number(h.quantile(0.99) * milliseconds)}
}

// number returns nil for what there is not.
func number(f float64) *float64 {
	if math.IsNaN(f) {
		return nil
	}
	f = round(f)
	return &f
}

// round keeps three decimals, more than the buckets tell.
func round(f float64) float64 { return math.Round(f*1000) / 1000 }
