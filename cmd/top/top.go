// Package top is the command `likectl top`.
package top

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"likectl/cmd/cli"
	"likectl/pkg/adminapi"
	"likectl/pkg/config"
	"likectl/pkg/progress"
	"likectl/pkg/scrape"
)

// Options are what `likectl top` is told.
type Options struct {
	// Admin is the base URL of the server's admin listener.
	Admin string
	// Config has the data folder with the server's secret, for the hot items.
	Config   config.Config
	Interval time.Duration
	// Once ends after one interval.
	Once   bool
	Output cli.Output
	// Terminal: the view is drawn over the one before.
	Terminal bool
}

// The bounds of --interval: a scrape takes some milliseconds of the server.
const minInterval, maxInterval = 100 * time.Millisecond, time.Hour

// NewCmd returns the command.
func NewCmd() *cobra.Command { return newCmd(Run) }

func newCmd(run func(context.Context, io.Writer, Options) error) *cobra.Command {
	var o Options
	var file, data string
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch what a running server does: rates, latencies, batches, queue",
		Long: `Watch what a running server does, from the metrics of its admin listener. On a
terminal the view is redrawn; elsewhere there is a line per interval.

  LIKES/S     operations on edges that went into transactions; REPLAYS/S of imports
  WRITES/S    requests that write, with the time that 50 and 99 of 100 took at most
  READS/S     the same of requests that read
  ERR/S       answers with a 5xx; REFUSED/S with a 4xx
  COMMITS/S   durable transactions, BATCH operations in each, QUEUED waiting now

On a terminal, with --once and as JSON, the ten items follow that took the most
likes, unlikes, saves and unsaves in the last minute. The server tells them to
administrators only: for a token its secret is read in the folder --data.

Times are interpolated between the bounds of the histograms; the greatest that
can be shown is 5 s.`,
		Example: `  likectl top
  likectl top --admin http://127.0.0.1:9090 --interval 5s
  likectl top --once --output json --data likectl-data`,
		Args: cobra.NoArgs,
	}
	set := cmd.Flags()
	set.StringVar(&o.Admin, "admin", "http://"+config.Default().AdminListen, "`URL` of the server's admin listener")
	set.DurationVar(&o.Interval, "interval", time.Second, "time between two views, 100ms to 1h")
	set.BoolVar(&o.Once, "once", false, "one view, after one interval")
	set.StringVarP(&file, "config", "c", "", "configuration file that names the data folder")
	set.StringVar(&data, "data", config.Default().Data, "the server's data folder, with its secret")
	cli.OutputFlag(cmd, &o.Output)
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if o.Interval < minInterval || o.Interval > maxInterval {
			return cli.Usagef("--interval is %v, want %v to %v", o.Interval, minInterval, maxInterval)
		}
		if o.Admin, err = adminapi.BaseURL(o.Admin); err != nil {
			return cli.Usagef("--admin: %w", err)
		}
		overrides := map[string]any{}
		if set.Changed("data") {
			overrides["data"] = data
		}
		if o.Config, err = config.Load(file, overrides); err != nil {
			return cli.WithCode(cli.Usage, err)
		}
		o.Terminal = progress.IsTerminal(cmd.OutOrStdout())
		return run(cmd.Context(), cmd.OutOrStdout(), o)
	}
	return cmd
}

// Run shows views until the context ends, which is no failure: it is how a view
// is left. A server that does not answer at first is one, later it is shown.
func Run(ctx context.Context, w io.Writer, o Options) error {
	client := scrape.NewClient(o.Admin)
	defer client.Close()
	old, err := client.Read(ctx)
	if err != nil {
		return fmt.Errorf("nothing to show: %w; name the server's admin listener with --admin", err)
	}
	hot := openHot(o)
	defer hot.close()
	p := printer{w: w, o: o}
	tick := time.NewTicker(o.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			if o.Once {
				return cli.WithCode(cli.Interrupted, errors.New("interrupted"))
			}
			return nil
		case <-tick.C:
		}
		now, err := client.Read(ctx)
		switch {
		case ctx.Err() != nil:
			continue
		case err != nil && o.Once:
			return err
		case err != nil:
			err = p.lost(err)
		default:
			v := view{View: scrape.Between(old, now)}
			if p.hot() {
				hot.add(ctx, &v)
			}
			err = p.view(v)
			old = now
		}
		if err != nil || o.Once {
			return err
		}
	}
}

// printer writes views in the form that was asked for.
type printer struct {
	w io.Writer
	o Options
	n int // lines since the header
}

const (
	// headerEvery repeats the header of lines about once a screen.
	headerEvery = 20
	// redraw goes to the upper left corner and erases what follows (ECMA-48, CUP
	// and ED).
	redraw = "\x1b[H\x1b[J"
	row    = "%-8s %9s %9s %9s %8s %8s %9s %8s %8s %7s %9s %9s %7s %8s\n"
)

// hot says whether views have the hot items: not those of a line each.
func (p *printer) hot() bool { return p.o.Output == cli.JSON || p.o.Terminal || p.o.Once }

func (p *printer) view(v view) error {
	switch {
	case p.o.Output == cli.JSON:
		return json.NewEncoder(p.w).Encode(v)
	case p.o.Terminal:
		_, err := io.WriteString(p.w, redraw+screen(p.o.Admin, v.View)+hotText(v))
		return err
	}
	if err := p.line(v.View); err != nil || !p.hot() {
		return err
	}
	_, err := io.WriteString(p.w, hotText(v))
	return err
}

func (p *printer) line(v scrape.View) error {
	if p.n%headerEvery == 0 {
		_, err := fmt.Fprintf(p.w, row, "TIME", "LIKES/S", "REPLAYS/S", "WRITES/S", "P50 ms", "P99 ms", "READS/S", "P50 ms", "P99 ms",
			"ERR/S", "REFUSED/S", "COMMITS/S", "BATCH", "QUEUED")
		if err != nil {
			return err
		}
	}
	p.n++
	_, err := fmt.Fprintf(p.w, row, v.At.Format(time.TimeOnly), rate(v.Likes), rate(v.Replays),
		rate(v.Writes), optional(v.WriteLatency.P50), optional(v.WriteLatency.P99),
		rate(v.Reads), optional(v.ReadLatency.P50), optional(v.ReadLatency.P99),
		rate(v.Errors), rate(v.Refused), rate(v.Commits), optional(v.Batch), whole(v.Queued))
	return err
}

// lost says that the server does not answer; the view goes on when it does.
func (p *printer) lost(err error) error {
	if p.o.Output == cli.JSON {
		return json.NewEncoder(p.w).Encode(map[string]any{"at": time.Now().UTC(), "error": err.Error()})
	}
	before := ""
	if p.o.Terminal {
		before = redraw
	}
	p.n = 0
	_, werr := fmt.Fprintf(p.w, "%s%s %v\n", before, time.Now().UTC().Format(time.TimeOnly), err)
	return werr
}

// screen is the view of a terminal.
func screen(admin string, v scrape.View) string {
	line := func(name, perSecond string, l scrape.Latency) string {
		return fmt.Sprintf("  %-8s %10s/s   p50 %8s ms   p99 %8s ms\n", name, perSecond, optional(l.P50), optional(l.P99))
	}
	return fmt.Sprintf("likectl %s  %s UTC, over %.1f s; Ctrl-C ends\n\n", admin, v.At.Format(time.TimeOnly), v.Seconds) +
		fmt.Sprintf("  %-8s %10s/s   replays %s/s\n", "likes", rate(v.Likes), rate(v.Replays)) +
		line("writes", rate(v.Writes), v.WriteLatency) +
		line("reads", rate(v.Reads), v.ReadLatency) +
		line("commits", rate(v.Commits), v.CommitLatency) +
		fmt.Sprintf("  %-8s %10s     operations per commit\n", "batch", optional(v.Batch)) +
		fmt.Sprintf("  %-8s %10s     operations waiting\n", "queued", whole(v.Queued)) +
		fmt.Sprintf("  %-8s %10s/s   refused %s/s, failed commits %s/s\n", "errors", rate(v.Errors), rate(v.Refused), rate(v.FailedCommits))
}

func rate(f float64) string {
	if f > 0 && f < 10 {
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return whole(f)
}

func whole(f float64) string { return strconv.FormatFloat(f, 'f', 0, 64) }

// optional is a number with a digit behind the point, - if there is none.
func optional(f *float64) string {
	if f == nil {
		return "-"
	}
	return strconv.FormatFloat(*f, 'f', 1, 64)
}
