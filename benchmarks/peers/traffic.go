package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"likectl/benchmarks/load"
)

// Traffic is which items are liked.
type Traffic string

// The kinds of traffic, alike for all systems.
const (
	Hot     Traffic = "hot"     // one item
	Uniform Traffic = "uniform" // a million items, evenly
	Zipf    Traffic = "zipf"    // a million items, the k-th most popular one by k^-1.1
)

const (
	items    = 1_000_000
	exponent = 1.1
	// users are so many that nobody likes an item twice by chance: then every like
	// is a first one in all systems. They fit into a double, since some systems
	// read numbers so.
	users = 1 << 53
)

// picker draws likes. It is used by one goroutine.
type picker struct {
	r       *rand.Rand
	zipf    *rand.Zipf
	traffic Traffic
}

func newPicker(t Traffic, number int) *picker {
	p := &picker{r: rand.New(rand.NewPCG(rand.Uint64(), uint64(number))), traffic: t} //nolint:gosec // traffic; rounds must differ
	if t == Zipf {
		p.zipf = rand.NewZipf(p.r, exponent, 1, items-1)
	}
	return p
}

func (p *picker) like() (item, user int64) {
	user = 1 + p.r.Int64N(users-1)
	switch p.traffic {
	case Hot:
		return 1, user
	case Zipf:
		return 1 + int64(p.zipf.Uint64()), user //nolint:gosec // below items
	default:
		return 1 + p.r.Int64N(items), user
	}
}

// warmup is the part of a round that is not in the rate.
const warmup = 0.15

// callers runs do from so many goroutines for a while, each after its last call has
// returned. It fails with the first error.
func callers(ctx context.Context, n int, d time.Duration, do func(ctx context.Context, caller int) error) (Sample, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	start := time.Now()
	from := time.Duration(warmup * float64(d))
	var all, measured atomic.Int64
	latency := hdrhistogram.New(1, int64(time.Minute/time.Microsecond), 3)
	var mu sync.Mutex
	var work sync.WaitGroup
	for i := range n {
		work.Go(func() {
			h := hdrhistogram.New(1, int64(time.Minute/time.Microsecond), 2)
			for ctx.Err() == nil {
				sent := time.Since(start)
				if sent >= d {
					break
				}
				if err := do(ctx, i); err != nil {
					cancel(err)
					return
				}
				got := time.Since(start)
				all.Add(1)
				if sent >= from {
					measured.Add(1)
					_ = h.RecordValue(max(1, (got - sent).Microseconds())) // no call takes a minute
				}
			}
			mu.Lock()
			defer mu.Unlock()
			latency.Merge(h)
		})
	}
	work.Wait()
	took := time.Since(start) - from
	if err := context.Cause(ctx); err != nil {
		return Sample{}, err
	}
	return Sample{
		Rate: float64(measured.Load()) / took.Seconds(), Done: all.Load(),
		P50: float64(latency.ValueAtQuantile(50)) / 1000, P99: float64(latency.ValueAtQuantile(99)) / 1000,
	}, nil
}

// script makes and judges the requests of one connection.
type script struct {
	// next appends a request; it says how many likes, or reads, it asks for.
	next func(b []byte) (request []byte, likes int64)
	// good says whether an answer is the wanted one.
	good func(status int, body []byte) bool
	// to is where all connections of a run are counted.
	to   *tally
	size int64
}

// tally counts the likes or reads of a run over all connections.
type tally struct{ good, bad, answers atomic.Int64 }

var _ load.Source = (*script)(nil)

// Next implements [load.Source].
func (s *script) Next(b []byte) ([]byte, load.Kind) {
	b, s.size = s.next(b)
	s.to.bad.Add(s.size) // until it is answered
	return b, 0
}

// Answered implements [load.Source].
func (s *script) Answered(_ load.Kind, status int, body []byte) string {
	if !s.good(status, body) {
		return fmt.Sprintf("%.200s", body)
	}
	s.to.bad.Add(-s.size)
	s.to.good.Add(s.size)
	s.to.answers.Add(1)
	return ""
}

// drive sends requests over connections for a while, at a rate or, with 0, as fast
// as they are answered. unsure are the likes without a good answer.
func drive(ctx context.Context, address string, connections int, rate float64, d time.Duration, pids map[string]int,
	source func(connection int, to *tally) *script,
) (s Sample, unsure int64, err error) {
	var to tally
	m := newMeter(true, pids)
	from := time.Duration(warmup * float64(d))
	got, err := load.Run(ctx, load.Config{
		Network: "tcp", Address: address, Connections: connections, Rate: rate, Poisson: rate > 0,
		Warmup: from, Duration: d - from, Timeout: 30 * time.Second, Seed: 1, Kinds: 1,
		Source: func(i int) load.Source { return source(i, &to) },
	})
	if err != nil {
		return s, 0, err
	}
	k := got.Kinds[0]
	good, bad := to.good.Load(), to.bad.Load()
	if bad*1000 > good {
		return s, 0, fmt.Errorf("%d of %d requests failed: %v", k.Sent-k.OK, k.Sent, k.Errors)
	}
	each := float64(good) / float64(max(1, to.answers.Load()))
	return Sample{
		Rate: each * float64(k.OK) / got.Took.Seconds(), Done: good, CPU: m.perLike(good),
		P50: float64(k.Latency.ValueAtQuantile(50)) / 1000, P99: float64(k.Latency.ValueAtQuantile(99)) / 1000,
		Extra: map[string]float64{"late_p99_ms": float64(got.Late.ValueAtQuantile(99)) / 1000},
	}, bad, nil
}
