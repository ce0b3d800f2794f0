package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"likectl/pkg/retry"
)

// Source makes the requests of one connection; it is used by one goroutine.
type Source interface {
	// Next appends a whole HTTP/1.1 request to b and says of which kind it is.
	Next(b []byte) ([]byte, Kind)
	// Answered is told what came back for it, and says what is wrong with an
	// answer, "" if nothing. body is valid during the call alone.
	Answered(k Kind, status int, body []byte) (fault string)
}

// Config is one run.
type Config struct {
	// Network and Address are those of net.Dial.
	Network, Address string
	// Connections is how many there are, 1 or more.
	Connections int
	// Rate is in requests per second; 0: as fast as the connections go (a closed
	// loop, for finding out how much that is; latency is then from the sending).
	Rate float64
	// Poisson makes the gaps between requests random, as those of many users are.
	Poisson bool
	Burst   Burst
	// Warmup is not recorded, Duration is.
	Warmup, Duration time.Duration
	// Timeout is for one request, from its sending.
	Timeout time.Duration
	Seed    uint64
	// Kinds is how many kinds of requests there are.
	Kinds int
	// Source returns the source of a connection.
	Source func(connection int) Source
	// Tick is called after every second of the measurement, from one goroutine.
	Tick func(Interval)
}

// Result is what a run measured.
type Result struct {
	// Took is from the end of the warm-up to the last answer.
	Took time.Duration
	// Due is how many requests were due in Duration.
	Due int64
	// Kinds are the statistics by Kind.
	Kinds     []Stats
	Intervals []Interval
	// Late is by how much idle connections sent after the instant that a request
	// was due, in microseconds: the generator's own fault, not the server's.
	Late *hdrhistogram.Histogram
	// Unsent is how many were due and never sent, because the backlog was full.
	Unsent int64
	// CPU is the processor time that this process took in Took.
	CPU time.Duration
}

// maxBacklog is how many requests may be due and not sent: more than a minute at
// 10,000 a second.
const maxBacklog = 1 << 20

// Validate returns an error that names what is out of range.
func (c *Config) Validate() error {
	switch {
	case c.Connections < 1 || c.Connections > 100_000:
		return fmt.Errorf("%d connections, want 1 to 100000", c.Connections)
	case c.Rate < 0 || c.Rate > 10_000_000:
		return fmt.Errorf("a rate of %g per second, want 0 to 10000000", c.Rate)
	case c.Duration <= 0 || c.Warmup < 0 || c.Timeout <= 0:
		return errors.New("duration and timeout must be more than 0, warm-up not less")
	case c.Burst.Factor != 0 && (c.Burst.Factor < 1 || c.Burst.Every <= 0 || c.Burst.Length <= 0 || c.Burst.Length > c.Burst.Every):
		return errors.New("a burst needs a factor of 1 or more and a length of at most its period")
	default:
		return nil
	}
}

// run is a run in progress.
type run struct {
	cfg    Config
	start  time.Time
	due    chan time.Duration
	shards []*shard
	stop   context.Context // its end ends closed loops
	unsent int64
	count  int64
}

// Run performs a run. It returns what it measured also with an error of the context.
func Run(ctx context.Context, cfg Config) (Result, error) {
	if err := cfg.Validate(); err != nil {
		return Result{}, err
	}
	// The scheduling thread keeps a processor of its own while it sleeps.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU() + 1))
	r := &run{cfg: cfg, start: time.Now(), shards: make([]*shard, min(cfg.Connections, 4))}
	for i := range r.shards {
		r.shards[i] = newShard(cfg.Kinds)
	}
	end := cfg.Warmup + cfg.Duration
	var cancel context.CancelFunc
	r.stop, cancel = context.WithTimeout(ctx, end)
	defer cancel()
	if cfg.Rate > 0 {
		r.due = make(chan time.Duration, maxBacklog)
	}
	var conns, watch sync.WaitGroup
	for i := range cfg.Connections {
		conns.Go(func() { r.connection(ctx, i) })
	}
	var out Result
	done := make(chan struct{})
	watch.Go(func() { out.Intervals = r.intervals(done) })
	cpu := cpuAt(ctx, cfg.Warmup)
	var err error
	if cfg.Rate > 0 {
		err = r.dispatch(ctx, end)
		close(r.due)
	}
	conns.Wait()
	out.Took = time.Since(r.start) - cfg.Warmup
	out.CPU = cpuTime() - <-cpu
	close(done)
	watch.Wait()
	r.sum(&out)
	return out, errors.Join(err, ctx.Err())
}

// dispatch hands over the requests as they become due.
func (r *run) dispatch(ctx context.Context, end time.Duration) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	sleep, err := newSleeper(r.start)
	if err != nil {
		return fmt.Errorf("clock: %w", err)
	}
	s := schedule{rate: r.cfg.Rate, burst: r.cfg.Burst}
	if r.cfg.Poisson {
		s.random = rand.New(rand.NewPCG(r.cfg.Seed, 0)) //nolint:gosec // a schedule, to be repeated
	}
	for at := s.next(); at < end && ctx.Err() == nil; at = s.next() {
		if time.Since(r.start) < at {
			if err := sleep.until(at); err != nil {
				return fmt.Errorf("clock: %w", err)
			}
		}
		if at >= r.cfg.Warmup {
			r.count++
		}
		select {
		case r.due <- at:
		default:
			r.unsent++
		}
	}
	return nil
}

// connection sends what is due until there is no more.
func (r *run) connection(ctx context.Context, i int) {
	c := &conn{network: r.cfg.Network, addr: r.cfg.Address, timeout: r.cfg.Timeout, in: make([]byte, 0, 4096)}
	defer c.close()
	source, shard := r.cfg.Source(i), r.shards[i%len(r.shards)]
	var request []byte
	for {
		at, idle, ok := r.take(ctx)
		if !ok {
			return
		}
		var kind Kind
		request, kind = source.Next(request[:0])
		sent := time.Since(r.start)
		if r.cfg.Rate == 0 {
			at = sent
		}
		status, body, err := c.do(ctx, request)
		got := time.Since(r.start)
		fault := "connection"
		if err == nil {
			if fault = source.Answered(kind, status, body); fault != "" {
				fault = strconv.Itoa(status) + " " + fault
			}
		}
		if at >= r.cfg.Warmup {
			shard.record(kind, got-at, got-sent, sent-at, idle, fault)
		}
	}
}

// take returns the next request's instant, and whether the connection waited for
// it; false when the run is over.
func (r *run) take(ctx context.Context) (at time.Duration, idle, ok bool) {
	if r.cfg.Rate == 0 {
		return 0, false, r.stop.Err() == nil
	}
	select {
	case at, ok = <-r.due:
		return at, false, ok && ctx.Err() == nil
	default:
		at, ok = <-r.due
		return at, true, ok && ctx.Err() == nil
	}
}

// intervals notes every second until done; the rest of one at the end is left out.
func (r *run) intervals(done <-chan struct{}) (all []Interval) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	h := histogram(intervalDigits)
	begun := r.start
	for {
		last := false
		select {
		case <-done:
			last = true
		case <-tick.C:
		}
		now := time.Now()
		in := Interval{At: now.Sub(r.start) - r.cfg.Warmup}
		partial := last && now.Sub(begun) < time.Second*9/10 && len(all) > 0
		begun = now
		for _, s := range r.shards {
			ok, bad := s.drain(h)
			in.OK, in.Failed = in.OK+ok, in.Failed+bad
		}
		in.P50, in.P99 = quantile(h, 50), quantile(h, 99)
		h.Reset()
		if !partial && (in.OK+in.Failed > 0 || in.At > time.Second/2 && !last) {
			all = append(all, in)
			if r.cfg.Tick != nil {
				r.cfg.Tick(in)
			}
		}
		if last {
			return all
		}
	}
}

// sum merges the shards.
func (r *run) sum(out *Result) {
	all := newShard(r.cfg.Kinds)
	for _, s := range r.shards {
		all.late.Merge(s.late)
		for k := range s.kinds {
			from, to := &s.kinds[k], &all.kinds[k]
			to.Sent, to.OK = to.Sent+from.Sent, to.OK+from.OK
			to.Latency.Merge(from.Latency)
			to.Service.Merge(from.Service)
			for fault, n := range from.Errors {
				to.Errors[fault] += n
			}
		}
	}
	out.Kinds, out.Late, out.Due, out.Unsent = all.kinds, all.late, r.count, r.unsent
}

// quantile returns a quantile, in percent, of a histogram of microseconds.
func quantile(h *hdrhistogram.Histogram, q float64) time.Duration {
	return time.Duration(h.ValueAtQuantile(q)) * time.Microsecond
}

// cpuAt returns a channel with the process's processor time at an instant from now,
// or at the context's end.
func cpuAt(ctx context.Context, after time.Duration) <-chan time.Duration {
	out := make(chan time.Duration, 1)
	go func() {
		_ = retry.Sleep(ctx, after) // a context that ends ends the run too
		out <- cpuTime()
	}()
	return out
}
