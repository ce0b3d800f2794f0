package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"likectl/benchmarks/bench"
	"likectl/benchmarks/load"
	"likectl/benchmarks/result"
	"likectl/benchmarks/workload"
	"likectl/cmd/app"
	"likectl/cmd/cli"
	"likectl/pkg/adminapi"
	"likectl/pkg/auth"
	"likectl/pkg/client"
	"likectl/pkg/config"
	"likectl/pkg/progress"
	"likectl/pkg/scrape"
	"likectl/pkg/store/postgres"
	"likectl/pkg/telemetry"
)

// Options are what `likectl bench run` is told.
type Options struct {
	// Bench is the run, but for what the server says of itself.
	Bench bench.Config
	// Config has the data folder with the secret that tokens are made with.
	Config config.Config
	// Admin is the base URL of the admin listener.
	Admin  string
	Expect []string
	// Out is the file that the result is stored in, or "".
	Out    string
	Output cli.Output
}

func newRunCmd(run func(context.Context, io.Writer, io.Writer, Options) error) *cobra.Command {
	var f flags
	var o Options
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Send a workload to a running server and report what came of it",
		Long: `Send a workload to a running server and report what came of it.

Requests are due at the wanted rate, whatever the server does, and latency counts
from when a request was due: a server that stands still is charged with everyone
who would have come meanwhile. --rate 0 instead sends as fast as the connections go.

At the end every count is compared with its edges. A run is INVALID, and exits
with 3, if counts differ, if less than 99 % of what was due was answered as wanted,
or if the generator itself was the limit. --expect sets bounds of your own, which
exit with 3 too.

With -c of a server on Postgres, or LIKECTL_POSTGRES_DSN, it is noted too what the
database writes to its log and how often it flushes it.

It writes likes to the server: use one that may be filled with them. The admin
token and the one for the API are made with the secret in the data folder.

Workloads:
` + workload.Describe(),
		Example: `  likectl bench run --workload write --rate 5000 --duration 30s
  likectl bench run --preload 1000000 --rate 2000 --expect 'write.p99<=50ms' --expect 'counts.p99<=20ms'
  likectl bench run --workload hot --rate 0 --connections 256 --out hot.json`,
		Args: cobra.NoArgs,
	}
	f.add(cmd)
	set := cmd.Flags()
	set.Float64Var(&o.Bench.Rate, "rate", 1000, "requests per second; 0: as fast as the connections go")
	set.StringArrayVar(&o.Expect, "expect", nil, "`BOUND` that the run must keep, such as write.p99<=50ms; may be given several times")
	set.StringVar(&o.Out, "out", "", "store the result in this `FILE` too, for bench report and compare")
	cli.OutputFlag(cmd, &o.Output)
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		rate := o.Bench.Rate
		if o.Bench, err = f.config(); err != nil {
			return err
		}
		o.Bench.Rate = rate
		if err := o.Bench.Validate(); err != nil {
			return cli.Usagef("%w", err)
		}
		for _, text := range o.Expect {
			if _, err := parseExpectation(text); err != nil {
				return err
			}
		}
		if o.Admin, err = adminapi.BaseURL(f.admin); err != nil {
			return cli.Usagef("--admin: %w", err)
		}
		if o.Config, err = f.stores.LoadFor(o.Admin); err != nil {
			return err
		}
		return run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), o)
	}
	return cmd
}

// Run performs the run and prints its result.
func Run(ctx context.Context, out, errOut io.Writer, o Options) error {
	r, err := measure(ctx, errOut, o)
	switch {
	case errors.Is(err, context.Canceled):
		return cli.WithCode(cli.Interrupted, errors.New("interrupted: there is no result; the likes that were sent stay"))
	case err != nil:
		return err
	}
	if o.Out != "" {
		if err := result.Write(o.Out, r); err != nil {
			return fmt.Errorf("the run is over, but its result is not stored: %w", err)
		}
	}
	if o.Output == cli.JSON {
		err = json.NewEncoder(out).Encode(&r)
	} else {
		err = r.Text(out)
	}
	if err != nil {
		return err
	}
	return verdict(&r, o.Expect)
}

// verdict is the command's error, with its exit code.
func verdict(r *result.Run, expect []string) error {
	var missed []string
	if !r.Valid() {
		missed = append(missed, "the run is invalid: "+strings.Join(r.Invalid, "; "))
	}
	for _, text := range expect {
		e, err := parseExpectation(text)
		if err != nil {
			return err
		}
		if m := e.missed(r); m != "" {
			missed = append(missed, m)
		}
	}
	if len(missed) == 0 {
		return nil
	}
	return cli.WithCode(cli.Threshold, errors.New(strings.Join(missed, "; ")))
}

// measure runs once.
func measure(ctx context.Context, errOut io.Writer, o Options) (result.Run, error) {
	c, end, err := connect(ctx, errOut, o)
	if err != nil {
		return result.Run{}, err
	}
	defer end()
	return bench.Run(ctx, c)
}

// answers asks the API for a sign of life: a run against nothing would fail request
// by request for its whole time.
func answers(ctx context.Context, url string) error {
	api, err := client.Open(ctx, client.Default(url, nil))
	if err != nil {
		return fmt.Errorf("no request was sent: no API answers at %s, name it with --url: %w", url, err)
	}
	api.Close()
	return nil
}

// connect asks the server what must be known, and returns the run with it and what
// must be called at the end.
func connect(ctx context.Context, errOut io.Writer, o Options) (c bench.Config, end func(), err error) {
	admin, types, err := app.AskServer(ctx, o.Config, o.Admin)
	if err != nil {
		return c, nil, fmt.Errorf("nothing was sent: %w", err)
	}
	c = o.Bench
	if err := answers(ctx, c.URL.String()); err != nil {
		admin.Close()
		return c, nil, err
	}
	kind, ok := types.Type(c.ItemType)
	if !ok {
		admin.Close()
		return c, nil, cli.Usagef("--item-type %s: the server at %s has no such item type", c.ItemType, o.Admin)
	}
	if c.Token, err = app.MintToken(o.Config, auth.Service, tokenTime(c)); err != nil {
		admin.Close()
		return c, nil, fmt.Errorf("nothing was sent: %w", err)
	}
	c.Admin, c.ItemNumber, c.Metrics = admin, kind, scrape.NewClient(o.Admin)
	build := telemetry.ReadBuild()
	c.Version = build.Version + " " + build.Revision
	closeLog := func() {}
	if dsn := o.Config.Postgres.DSN.Reveal(); dsn != "" {
		wal, err := postgres.OpenWAL(ctx, dsn)
		if err != nil {
			admin.Close()
			return c, nil, fmt.Errorf("nothing was sent: %w", err)
		}
		c.Log = wal.Read
		closeLog = func() { _ = wal.Close(context.WithoutCancel(ctx)) } // it was only read
	}
	p := &phases{out: errOut}
	c.Phase, c.Progress, c.Tick = p.begin, p.at, p.tick
	return c, func() {
		p.stop()
		closeLog()
		c.Metrics.Close()
		admin.Close()
	}, nil
}

// tokenTime is for how long the run needs its token: a preload may take long.
func tokenTime(c bench.Config) time.Duration {
	return min(auth.MaxTTL, time.Hour+c.Warmup+c.Duration+time.Duration(c.Preload)*time.Millisecond)
}

// phases show how far a run is.
type phases struct {
	out         io.Writer
	bar         *progress.Reporter
	done, total atomic.Int64
}

func (p *phases) begin(name string) {
	p.stop()
	p.done.Store(0)
	p.total.Store(0)
	switch name {
	case "preload":
		p.bar = p.start("likes")
	case "check":
		p.bar = p.start("counters")
	}
}

func (p *phases) start(unit string) *progress.Reporter {
	return progress.Start(p.out, unit, func() progress.Sample { return progress.Sample{Done: p.done.Load(), Total: p.total.Load()} })
}

func (p *phases) stop() {
	if p.bar != nil {
		p.bar.Stop()
		p.bar = nil
	}
}

func (p *phases) at(done, total int64) {
	p.done.Store(done)
	p.total.Store(total)
}

// tick prints a line per second: what is measured is short.
func (p *phases) tick(in load.Interval) {
	fmt.Fprintf(p.out, "%4.0fs  %8d ok/s  %6d failed/s  p50 %8.2fms  p99 %8.2fms\n", //nolint:errcheck // progress is not worth failing for
		in.At.Seconds(), in.OK, in.Failed, in.P50.Seconds()*1000, in.P99.Seconds()*1000)
}
