package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"likectl/benchmarks/bench"
	"likectl/benchmarks/result"
	"likectl/cmd/cli"
	"likectl/pkg/adminapi"
)

// CapacityOptions are what `likectl bench capacity` is told: Expect of its Options
// are the limits.
type CapacityOptions struct {
	Options
	From, To, Precision float64
}

func newCapacityCmd(run func(context.Context, io.Writer, io.Writer, CapacityOptions) error) *cobra.Command {
	var f flags
	var o CapacityOptions
	cmd := &cobra.Command{
		Use:   "capacity",
		Short: "Find the rate up to which a running server keeps its latency",
		Long: `Find the rate up to which a running server keeps its latency: the knee.

The rate grows until a limit is missed in two runs; then the gap is halved until the
knee is known to --precision. A last run is at 70 % of the knee, where a system should
be run. A rate is missed too if less than 99 % of it was answered as wanted, or if
a count differs from its edges.

Each run takes --warmup and --duration and sends what ` + "`likectl bench run`" + ` sends.`,
		Example: `  likectl bench capacity --workload write
  likectl bench capacity --workload default --limit 'write.p99<=50ms' --limit 'counts.p99<=20ms' --out capacity.json`,
		Args: cobra.NoArgs,
	}
	f.add(cmd)
	set := cmd.Flags()
	set.Float64Var(&o.From, "from", 500, "the first rate, per second")
	set.Float64Var(&o.To, "to", 200_000, "the greatest rate to try")
	set.Float64Var(&o.Precision, "precision", 0.1, "how exactly to find the knee, as a part of it")
	set.StringArrayVar(&o.Expect, "limit", nil, "`BOUND` to be kept; default: the documents' goals of tier 1, a P99 of 50ms for writes and 20ms for reads")
	set.StringVar(&o.Out, "out", "", "store all runs in this `FILE`, for bench report")
	cli.OutputFlag(cmd, &o.Output)
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if o.Bench, err = f.config(); err != nil {
			return err
		}
		for _, text := range o.Expect {
			if _, err := parseExpectation(text); err != nil {
				return err
			}
		}
		if o.From <= 0 || o.To < o.From || o.Precision <= 0 || o.Precision >= 1 {
			return cli.Usagef("--from, --to and --precision: want a first rate above 0, a last one not below it, and a precision between 0 and 1")
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

// RunCapacity searches and prints.
func RunCapacity(ctx context.Context, out, errOut io.Writer, o CapacityOptions) error {
	limits, err := o.limits()
	if err != nil {
		return err
	}
	c, end, err := connect(ctx, errOut, o.Options)
	if err != nil {
		return err
	}
	defer end()
	c.Tick = nil
	found, err := bench.Find(ctx, c, bench.Search{
		From: o.From, To: o.To, Precision: o.Precision,
		Within: func(r *result.Run) string { return within(r, limits) },
		Tried: func(r *result.Run, missed string) {
			if missed == "" {
				missed = "kept"
			}
			_, _ = fmt.Fprintf(errOut, "%8.0f/s  achieved %8.0f/s  %s\n", r.Wanted, r.Achieved, missed) // progress is not worth failing for
		},
	})
	if o.Out != "" && len(found.Runs) > 0 {
		err = errors.Join(err, result.Write(o.Out, found.Runs...))
	}
	switch {
	case errors.Is(err, context.Canceled):
		return cli.WithCode(cli.Interrupted, errors.New("interrupted: the knee was not found; the likes that were sent stay"))
	case err != nil:
		return err
	}
	return printCapacity(out, o, found)
}

// limits are those that were given, or the documents'.
func (o *CapacityOptions) limits() ([]expectation, error) {
	texts := o.Expect
	if len(texts) == 0 {
		for k, w := range o.Bench.Mix.Weights {
			if w > 0 {
				texts = append(texts, goal(k))
			}
		}
	}
	limits := make([]expectation, len(texts))
	for i, text := range texts {
		var err error
		if limits[i], err = parseExpectation(text); err != nil {
			return nil, err
		}
	}
	return limits, nil
}

// within says what a run misses of its limits, "" if nothing. That the generator was
// late is no fault where the limits are kept all the same: latency counts from when a
// request was due, so its lateness is in what is held against them.
func within(r *result.Run, limits []expectation) string {
	missed := append([]string{}, r.Invalid...)
	if r.Limited && len(missed) == 1 {
		missed = nil
	}
	for _, e := range limits {
		if m := e.missed(r); m != "" {
			missed = append(missed, m)
		}
	}
	if r.Limited && len(missed) > 0 && len(r.Invalid) == 1 {
		missed = append(missed, r.Invalid...)
	}
	return strings.Join(missed, "; ")
}

func printCapacity(out io.Writer, o CapacityOptions, found bench.Capacity) error {
	if o.Output == cli.JSON {
		return json.NewEncoder(out).Encode(struct {
			Knee   float64      `json:"knee"`
			Missed float64      `json:"missed"`
			Why    string       `json:"why"`
			Runs   []result.Run `json:"runs"`
		}{found.Knee, found.Missed, found.Why, found.Runs})
	}
	rows := [][]string{{"WANTED/S", "ACHIEVED/S", "KIND", "P50 MS", "P99 MS", "FAILED"}}
	for i := range found.Runs {
		r := &found.Runs[i]
		for _, k := range r.Kinds {
			rows = append(rows, []string{
				fmt.Sprintf("%.0f", r.Wanted), fmt.Sprintf("%.0f", k.Rate), k.Name, fmt.Sprintf("%.2f", k.Latency.P50), fmt.Sprintf("%.2f", k.Latency.P99),
				fmt.Sprint(k.Failed()),
			})
		}
	}
	if err := cli.PrintTable(out, rows); err != nil {
		return err
	}
	verdict := fmt.Sprintf("the knee is at %.0f/s; at %.0f/s: %s", found.Knee, found.Missed, found.Why)
	switch {
	case found.Knee == 0:
		return cli.WithCode(cli.Threshold, fmt.Errorf("no rate down to %.0f/s was carried: %s", found.Missed, found.Why))
	case found.Missed == 0:
		verdict = fmt.Sprintf("%.0f/s was carried, the greatest rate that was to be tried (--to)", found.Knee)
	}
	_, err := fmt.Fprintln(out, verdict)
	return err
}
