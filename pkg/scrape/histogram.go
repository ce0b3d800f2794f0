package scrape

import (
	"math"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
)

// labels are those of one series.
type labels map[string]string

func labelsOf(m *dto.Metric) labels {
	l := make(labels, len(m.GetLabel()))
	for _, p := range m.GetLabel() {
		l[p.GetName()] = p.GetValue()
	}
	return l
}

// histogram is the sum of several series: how many observations are at or below
// each bound.
type histogram struct {
	count, sum float64
	buckets    map[float64]float64
}

// histogram adds up the chosen series of a family.
func (r *Reading) histogram(name string, choose func(labels) bool) histogram {
	h := histogram{buckets: make(map[float64]float64)}
	for _, m := range r.families[name].GetMetric() {
		if !choose(labelsOf(m)) {
			continue
		}
		h.count += float64(m.GetHistogram().GetSampleCount())
		h.sum += m.GetHistogram().GetSampleSum()
		for _, b := range m.GetHistogram().GetBucket() {
			h.buckets[b.GetUpperBound()] += float64(b.GetCumulativeCount())
		}
	}
	return h
}

// total adds up the chosen series of counters or gauges.
func (r *Reading) total(name string, choose func(labels) bool) (sum float64) {
	for _, m := range r.families[name].GetMetric() {
		if choose(labelsOf(m)) {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}

// since returns what was observed after an older state. A count that went down
// is that of a server that was started anew: all of it is new.
func (h histogram) since(old histogram) histogram {
	if h.count < old.count {
		return h
	}
	d := histogram{count: h.count - old.count, sum: h.sum - old.sum, buckets: make(map[float64]float64, len(h.buckets))}
	for bound, n := range h.buckets {
		d.buckets[bound] = n - old.buckets[bound]
	}
	return d
}

// quantile returns the value below which a share q of the observations is, as
// Prometheus does (histogram_quantile): evenly spread within a bucket, and the
// greatest bound for what lies above it. NaN without observations.
func (h histogram) quantile(q float64) float64 {
	if h.count <= 0 {
		return math.NaN()
	}
	bounds := make([]float64, 0, len(h.buckets))
	for b := range h.buckets {
		if !math.IsInf(b, 1) {
			bounds = append(bounds, b)
		}
	}
	slices.Sort(bounds)
	rank := q * h.count
	lower, below := 0.0, 0.0
	for _, upper := range bounds {
		if n := h.buckets[upper]; n >= rank {
			if n == below {
				return upper
			}
			return lower + (upper-lower)*(rank-below)/(n-below)
		}
		lower, below = upper, h.buckets[upper]
	}
	return lower
}

// isRead says whether a route of the API changes nothing. Two of the POSTs read:
// they take more items than fit in a URL.
func isRead(route string) bool {
	method, path, _ := strings.Cut(route, " ")
	return method == "GET" || path == "/v1/counts" || path == "/v1/has_liked"
}
