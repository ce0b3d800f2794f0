// Package bench runs a workload against a running server and says what came of it:
// it fills the server, warms it up, measures, and compares every count with its
// edges at the end. A run whose counts are wrong, or in which the generator itself
// was what was slow, is invalid, whatever its numbers.
package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"likectl/benchmarks/load"
	"likectl/benchmarks/result"
	"likectl/benchmarks/workload"
	"likectl/pkg/likes"
	"likectl/pkg/reconcile"
	"likectl/pkg/scrape"
)

// Admin is what a run asks of the server's admin listener.
type Admin interface {
	Apply(ctx context.Context, ms []likes.Mutation) []likes.Result
	Reconcile(ctx context.Context, c reconcile.Config, at func(checked, estimate int64), found func(reconcile.Found) error) (reconcile.Summary, error)
}

// Config is one run.
type Config struct {
	// URL is the API, http alone: what is measured is the server.
	URL   *url.URL
	Admin Admin
	// Metrics reads the server's metrics; nil: they are left out.
	Metrics *scrape.Client
	// Token is a service token, ItemType and ItemNumber the type of all items.
	Token      string
	ItemType   string
	ItemNumber likes.ItemType
	Version    string

	Mix        workload.Mix
	Population workload.Population
	// Preload is how many edges there must be before the run.
	Preload int64

	// Rate is in requests per second, 0: as fast as the connections go.
	Rate             float64
	Poisson          bool
	Connections      int
	Warmup, Duration time.Duration
	Timeout          time.Duration
	Seed             uint64
	// Watch are processes whose processor time is noted, by name.
	Watch map[string]int
	// Log reads how many bytes the database has written to its log and how often it
	// has flushed it; nil: nobody looks.
	Log func(context.Context) (bytes, flushes int64, err error)
	// Unchecked leaves out the comparison of counts with edges.
	Unchecked bool

	// Phase is told what begins: preload, measure, check.
	Phase func(name string)
	// Progress is told how far the preload or the check is, Tick of each second.
	Progress func(done, total int64)
	Tick     func(load.Interval)
}

// Bounds of validity.
const (
	// minAchieved is the part of the wanted rate that must be answered in time for
	// the load to have been the one that was asked for.
	minAchieved = 0.99
	// maxLate bounds by how much the generator's own fault may falsify a quantile.
	maxLate = time.Millisecond
)

// Validate returns an error that names what is wrong.
func (c *Config) Validate() error {
	switch {
	case c.URL == nil || c.URL.Scheme != "http" || c.URL.Host == "":
		return errors.New("the URL must be http://HOST:PORT")
	case c.Population.Users < 1 || c.Population.Items < 1:
		return fmt.Errorf("%d users and %d items, want 1 or more", c.Population.Users, c.Population.Items)
	case c.Preload < 0:
		return fmt.Errorf("a preload of %d edges, want 0 or more", c.Preload)
	case c.Preload > c.Population.Users*c.Population.Items:
		return fmt.Errorf("a preload of %d edges: %d users and %d items have no more than %d",
			c.Preload, c.Population.Users, c.Population.Items, c.Population.Users*c.Population.Items)
	}
	l := c.load()
	return l.Validate()
}

func (c *Config) load() load.Config {
	address := c.URL.Host
	if c.URL.Port() == "" {
		address = net.JoinHostPort(c.URL.Hostname(), "80")
	}
	target := workload.Target{Host: c.URL.Host, Token: c.Token, ItemType: c.ItemType}
	return load.Config{
		Network: "tcp", Address: address, Connections: c.Connections, Rate: c.Rate, Poisson: c.Poisson, Burst: c.Mix.Burst,
		Warmup: c.Warmup, Duration: c.Duration, Timeout: c.Timeout, Seed: c.Seed, Kinds: workload.Kinds, Tick: c.Tick,
		Source: func(i int) load.Source { return workload.NewSource(target, c.Mix, c.Population, c.Seed, i) },
	}
}

// Run performs the run. With an error it is not complete.
func Run(ctx context.Context, c Config) (r result.Run, err error) {
	if err := c.Validate(); err != nil {
		return r, err
	}
	r = result.Run{
		Started: time.Now().UTC(), Machine: result.ThisMachine(), Target: result.Target{URL: c.URL.String(), Version: c.Version},
		Wanted: c.Rate, Invalid: []string{},
		Workload: result.Workload{
			Name: c.Mix.Name, Seed: c.Seed, Users: c.Population.Users, Items: c.Population.Items, Preloaded: c.Preload,
			Connections: c.Connections, Poisson: c.Poisson, Warmup: c.Warmup.Seconds(), Duration: c.Duration.Seconds(),
		},
	}
	if c.Preload > 0 {
		c.phase("preload")
		if err := c.preload(ctx); err != nil {
			return r, fmt.Errorf("preload: %w", err)
		}
	}
	c.phase("measure")
	if err := c.measure(ctx, &r); err != nil {
		return r, err
	}
	if !c.Unchecked {
		c.phase("check")
		if err := c.check(ctx, &r); err != nil {
			return r, fmt.Errorf("compare counts with their edges: %w", err)
		}
	}
	return r, nil
}

func (c *Config) phase(name string) {
	if c.Phase != nil {
		c.Phase(name)
	}
}

func (c *Config) progress(done, total int64) {
	if c.Progress != nil {
		c.Progress(done, total)
	}
}

// measure generates the load and fills in what it found.
func (c *Config) measure(ctx context.Context, r *result.Run) error {
	l := c.load()
	watch, wal := newWatch(c.Watch), newLogWatch(ctx, c.Log)
	before := c.readMetrics(ctx, c.Warmup)
	watch.start(ctx, c.Warmup)
	wal.start(c.Warmup)
	ticks := l.Tick
	l.Tick = func(in load.Interval) {
		log, flushes := wal.step()
		r.Series = append(r.Series, result.Point{
			At: in.At.Seconds(), OK: in.OK, Failed: in.Failed, P50: ms(in.P50), P99: ms(in.P99), CPU: watch.step(), Log: log, Flushes: flushes,
		})
		if ticks != nil {
			ticks(in)
		}
	}
	got, err := load.Run(ctx, l)
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	r.Seconds = got.Took.Seconds()
	var ok, sent int64
	for k, stats := range got.Kinds {
		ok, sent = ok+stats.OK, sent+stats.Sent
		if stats.Sent == 0 {
			continue
		}
		kind := result.Kind{
			Name: workload.KindName(load.Kind(k)), Sent: stats.Sent, OK: stats.OK, Errors: stats.Errors, Rate: float64(stats.OK) / r.Seconds, //nolint:gosec // few kinds
		}
		var e1, e2 error
		kind.Latency, e1 = result.NewLatency(stats.Latency)
		kind.Service, e2 = result.NewLatency(stats.Service)
		if err := errors.Join(e1, e2); err != nil {
			return err
		}
		r.Kinds = append(r.Kinds, kind)
	}
	r.Achieved = float64(ok) / r.Seconds
	if r.Late, err = result.NewLatency(got.Late); err != nil {
		return err
	}
	r.Processes = append(watch.stop(ok), result.Process{Name: "bench", CPU: got.CPU.Seconds(), PerRequest: perRequest(got.CPU, ok)})
	c.readServer(ctx, r, <-before)
	r.Server.Log, r.Server.Flushes = wal.stop()
	judge(r, got, sent, ok)
	return nil
}

// judge says what makes a run invalid.
func judge(r *result.Run, got load.Result, sent, ok int64) {
	add := func(format string, args ...any) { r.Invalid = append(r.Invalid, fmt.Sprintf(format, args...)) }
	if sent == 0 {
		add("nothing was sent")
		return
	}
	if got.Unsent > 0 {
		add("%d requests were due and never sent: the backlog was full", got.Unsent)
	}
	if r.Wanted > 0 && float64(ok) < minAchieved*float64(got.Due) {
		add("%d of %d requests that were due were answered as wanted, less than %.0f %%", ok, got.Due, 100*minAchieved)
	}
	if r.Wanted > 0 && r.Seconds > 1.05*r.Workload.Duration+0.1 {
		add("the answers took %.1f s, for requests due within %.1f s: the server is slower than the wanted rate", r.Seconds, r.Workload.Duration)
	}
	if late := time.Duration(r.Late.P99 * float64(time.Millisecond)); r.Wanted > 0 && late > maxLate {
		r.Limited = true
		add("the generator itself was late by %v at the 99th percentile, more than %v: it, or the machine, is the limit", late, maxLate)
	}
}

// check compares every counter with its edges.
func (c *Config) check(ctx context.Context, r *result.Run) error {
	sum, err := c.Admin.Reconcile(ctx, reconcile.Config{DryRun: true, PerSecond: reconcile.MaxPerSecond}, c.progress,
		func(reconcile.Found) error { return nil })
	if err != nil {
		return err
	}
	r.Check = &result.Check{Counters: sum.Checked, Different: sum.Drifted}
	if sum.Drifted > 0 {
		r.Invalid = append(r.Invalid, fmt.Sprintf("%d of %d counts differ from their edges", sum.Drifted, sum.Checked))
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func perRequest(cpu time.Duration, n int64) float64 {
	if n == 0 {
		return 0
	}
	return float64(cpu) / float64(time.Microsecond) / float64(n)
}
