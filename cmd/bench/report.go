package bench

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"likectl/benchmarks/report"
	"likectl/benchmarks/result"
	"likectl/cmd/cli"
)

func newReportCmd() *cobra.Command {
	var format, file string
	cmd := &cobra.Command{
		Use:   "report FILE...",
		Short: "Turn stored runs into text, Markdown, HTML with plots, or lines for benchstat",
		Long: `Turn stored runs into text, Markdown, HTML with plots, or lines for benchstat.

The HTML page needs nothing but itself: latency by quantile, rate against latency
where there are several rates, and latency, answers, failures and processors by
second.`,
		Example: `  likectl bench report run.json
  likectl bench report --format html --out report.html capacity.json
  likectl bench report --format go old.json > old.txt`,
		Args: cobra.MinimumNArgs(1),
	}
	cmd.Flags().StringVar(&format, "format", "text", "{"+strings.Join(report.Formats(), "|")+"}")
	cmd.Flags().StringVar(&file, "out", "", "write to this `FILE`")
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(report.Formats(), cobra.ShellCompDirectiveNoFileComp)))
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		known := false
		for _, f := range report.Formats() {
			known = known || f == format
		}
		if !known {
			return cli.Usagef("--format %s: want one of %s", format, strings.Join(report.Formats(), ", "))
		}
		runs, err := readAll(args)
		if err != nil {
			return err
		}
		if file == "" {
			return report.Write(cmd.OutOrStdout(), format, runs)
		}
		f, err := os.Create(file)
		if err != nil {
			return err
		}
		w := bufio.NewWriter(f)
		return errors.Join(report.Write(w, format, runs), w.Flush(), f.Close())
	}
	return cmd
}

func newCompareCmd() *cobra.Command {
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "compare OLD NEW",
		Short: "Say whether two sets of runs differ",
		Long: `Say whether two sets of runs of the same workload differ.

With five runs or more in each file, runs are compared; with fewer, the seconds of
them. Medians are shown with their 95 % confidence intervals; a measure differs if
the Mann-Whitney U test says so at a level of 1 % for all measures together, and by
3 % at least. Seconds of one run resemble each other more than runs do: to be sure of
a small difference, make five runs of each.

The exit code is 0 if nothing differs, 3 if something does.`,
		Example: `  for i in 1 2 3 4 5; do likectl bench run --out old-$i.json; done
  likectl bench compare <(cat old-*.json) <(cat new-*.json)`,
		Args: cobra.ExactArgs(2),
	}
	cli.OutputFlag(cmd, &output)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		old, err := result.Read(args[0])
		if err != nil {
			return err
		}
		now, err := result.Read(args[1])
		if err != nil {
			return err
		}
		c, err := report.Compare(old, now)
		if err != nil {
			return cli.Usagef("%w", err)
		}
		if output == cli.JSON {
			err = json.NewEncoder(cmd.OutOrStdout()).Encode(&c)
		} else {
			err = c.Text(cmd.OutOrStdout())
		}
		return errors.Join(err, differs(&c))
	}
	return cmd
}

func differs(c *report.Comparison) error {
	if !c.Different() {
		return nil
	}
	return cli.WithCode(cli.Threshold, errors.New("the runs differ"))
}

func readAll(paths []string) (runs []result.Run, err error) {
	for _, path := range paths {
		some, err := result.Read(path)
		if err != nil {
			return nil, fmt.Errorf("no report was made: %w", err)
		}
		runs = append(runs, some...)
	}
	return runs, nil
}
