package result

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latency is a distribution of times, in milliseconds.
type Latency struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean_ms"`
	P50   float64 `json:"p50_ms"`
	P90   float64 `json:"p90_ms"`
	P99   float64 `json:"p99_ms"`
	P999  float64 `json:"p999_ms"`
	Max   float64 `json:"max_ms"`
	// HDR is the whole of it: an HdrHistogram of microseconds in its V2 encoding,
	// compressed, in base64.
	HDR string `json:"hdr,omitempty"`
}

// NewLatency sums up a histogram of microseconds.
func NewLatency(h *hdrhistogram.Histogram) (Latency, error) {
	at := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1000 }
	l := Latency{Count: h.TotalCount(), Mean: h.Mean() / 1000, P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: float64(h.Max()) / 1000}
	if l.Count == 0 {
		return Latency{}, nil
	}
	encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return Latency{}, fmt.Errorf("encode a histogram: %w", err)
	}
	l.HDR = string(encoded)
	return l, nil
}

// Histogram returns the whole distribution, in microseconds.
func (l Latency) Histogram() (*hdrhistogram.Histogram, error) {
	if l.HDR == "" {
		return hdrhistogram.New(1, 60_000_000, 3), nil
	}
	h, err := hdrhistogram.Decode([]byte(l.HDR))
	if err != nil {
		return nil, fmt.Errorf("decode a histogram: %w", err)
	}
	return h, nil
}
