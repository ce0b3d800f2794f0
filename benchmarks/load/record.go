package load

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latencies are kept in microseconds from 1 to a minute, with three digits: an error
// of at most 0.1 %. An interval's, for a curve, has two.
const (
	maxLatency     = int64(time.Minute / time.Microsecond)
	digits         = 3
	intervalDigits = 2
)

// Kind numbers the kinds of requests of a run, from 0.
type Kind uint8

// Stats are the requests of one kind.
type Stats struct {
	// Sent is how many were sent, OK how many were answered as wanted. The rest is
	// in Errors, by status, or by "connection" where there was no answer. Their
	// latencies are not in Latency.
	Sent, OK int64
	Errors   map[string]int64
	// Latency is from the instant at which a request was due to its answer, Service
	// from its sending; in microseconds.
	Latency, Service *hdrhistogram.Histogram
}

// Interval is one second of a run, of all kinds together.
type Interval struct {
	At         time.Duration // its end, from the start of what is measured
	OK, Failed int64
	P50, P99   time.Duration
}

// shard is the part of the record that some of the connections share, so that they
// seldom meet at a lock.
type shard struct {
	mu       sync.Mutex
	kinds    []Stats
	late     *hdrhistogram.Histogram // microseconds between due and sent, of idle connections
	interval *hdrhistogram.Histogram
	ok, bad  int64 // of the interval
	_        [64]byte
}

func newShard(kinds int) *shard {
	s := &shard{kinds: make([]Stats, kinds), late: histogram(digits), interval: histogram(intervalDigits)}
	for i := range s.kinds {
		s.kinds[i] = Stats{Errors: map[string]int64{}, Latency: histogram(digits), Service: histogram(digits)}
	}
	return s
}

func histogram(digits int) *hdrhistogram.Histogram { return hdrhistogram.New(1, maxLatency, digits) }

// record notes an answer. fault is "" for one as wanted.
func (s *shard) record(k Kind, latency, service, late time.Duration, idle bool, fault string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := &s.kinds[k]
	st.Sent++
	if idle {
		note(s.late, late)
	}
	if fault != "" {
		st.Errors[fault]++
		s.bad++
		return
	}
	st.OK++
	s.ok++
	note(st.Latency, latency)
	note(st.Service, service)
	note(s.interval, latency)
}

// note records a duration; the first microsecond counts as one.
func note(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(1, int64(d/time.Microsecond)), maxLatency)) // always in range
}

// drain empties the interval into another histogram.
func (s *shard) drain(into *hdrhistogram.Histogram) (ok, bad int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	into.Merge(s.interval)
	s.interval.Reset()
	ok, bad = s.ok, s.bad
	s.ok, s.bad = 0, 0
	return ok, bad
}
