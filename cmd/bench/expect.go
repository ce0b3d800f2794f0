package bench

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"likectl/benchmarks/load"
	"likectl/benchmarks/result"
	"likectl/benchmarks/workload"
	"likectl/cmd/cli"
)

// expectation is a bound that a run must keep.
type expectation struct {
	text  string
	kind  string
	of    func(result.Kind) float64 // in milliseconds, or per second
	least bool                      // the bound is a least value
	bound float64
	unit  string
}

// measures are what can be expected of a kind of request.
func measures() map[string]func(result.Kind) float64 {
	return map[string]func(result.Kind) float64{
		"p50":    func(k result.Kind) float64 { return k.Latency.P50 },
		"p90":    func(k result.Kind) float64 { return k.Latency.P90 },
		"p99":    func(k result.Kind) float64 { return k.Latency.P99 },
		"p999":   func(k result.Kind) float64 { return k.Latency.P999 },
		"max":    func(k result.Kind) float64 { return k.Latency.Max },
		"rate":   func(k result.Kind) float64 { return k.Rate },
		"errors": func(k result.Kind) float64 { return float64(k.Failed()) },
	}
}

// parseExpectation reads KIND.MEASURE<=VALUE or >=.
func parseExpectation(text string) (e expectation, err error) {
	fail := func() (expectation, error) {
		return e, cli.Usagef("--expect %s: want KIND.MEASURE<=VALUE, such as write.p99<=50ms, counts.rate>=1000 or write.errors<=0; KIND is one of %s, "+
			"MEASURE p50, p90, p99, p999, max, rate or errors", text, strings.Join(workload.KindNames(), ", "))
	}
	left, right, ok := strings.Cut(text, "<=")
	if !ok {
		if left, right, ok = strings.Cut(text, ">="); !ok {
			return fail()
		}
		e.least = true
	}
	kind, measure, ok := strings.Cut(strings.TrimSpace(left), ".")
	e.text, e.kind, e.of = text, kind, measures()[measure]
	known := false
	for _, name := range workload.KindNames() {
		known = known || name == kind
	}
	if !ok || !known || e.of == nil {
		return fail()
	}
	right = strings.TrimSpace(right)
	if measure == "rate" || measure == "errors" {
		if e.bound, err = strconv.ParseFloat(right, 64); err != nil {
			return fail()
		}
		return e, nil
	}
	d, err := time.ParseDuration(right)
	if err != nil {
		return fail()
	}
	e.bound, e.unit = float64(d)/float64(time.Millisecond), "ms"
	return e, nil
}

// missed says how a run misses the expectation, "" if it does not.
func (e expectation) missed(r *result.Run) string {
	k, ok := r.Kind(e.kind)
	if !ok {
		return fmt.Sprintf("%s: there were no requests of this kind", e.text)
	}
	got := e.of(k)
	if e.least && got >= e.bound || !e.least && got <= e.bound {
		return ""
	}
	return fmt.Sprintf("%s: it was %.4g%s", e.text, got, e.unit)
}

// goal is the documents' goal of tier 1 for a kind of request.
func goal(kind int) string {
	k := load.Kind(kind) //nolint:gosec // few kinds
	if workload.Reads(k) {
		return workload.KindName(k) + ".p99<=20ms"
	}
	return workload.KindName(k) + ".p99<=50ms"
}
