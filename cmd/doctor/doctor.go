// Package doctor is the command `likectl doctor`.
package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"likectl/cmd/app"
	"likectl/cmd/cli"
	"likectl/pkg/config"
	"likectl/pkg/doctor"
)

// Options are what `likectl doctor` is told.
type Options struct {
	Config config.Config
	// Instances is the number of servers that will share the backends, 1 or more.
	Instances int
	Output    cli.Output
}

// maxInstances is what the ids of instances leave room for.
const maxInstances = 512

// NewCmd returns the command.
func NewCmd() *cobra.Command { return newCmd(Run) }

func newCmd(run func(context.Context, io.Writer, Options) error) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check everything that the service stands on, and say what each finding costs",
		Long: `Check everything that a server with this configuration stands on: data folder,
secret, disk, limits of the machine, and every backend with its version, schema,
durability, copies, clock, connections and tables. Nothing is changed; it may be
run beside a running service.

Each finding says what it means for the likes, and what to do about it:

  OK    as it should be
  WARN  the service runs; something can be lost, or stop it later
  FAIL  the service does not start, or loses likes that it has answered

The exit code is 1 if anything failed, else 0.`,
		Example: `  likectl doctor
  likectl doctor -c configs/tier1.yaml --instances 4
  likectl doctor --data /var/lib/likectl --output json`,
		Args: cobra.NoArgs,
	}
	stores := app.AddStoreFlags(cmd)
	cmd.Flags().IntVar(&o.Instances, "instances", 1, "servers that share the backends, 1 to 512")
	cli.OutputFlag(cmd, &o.Output)
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if o.Instances < 1 || o.Instances > maxInstances {
			return cli.Usagef("--instances is %d, want 1 to %d", o.Instances, maxInstances)
		}
		if o.Config, err = stores.Load(); err != nil {
			return err
		}
		return run(cmd.Context(), cmd.OutOrStdout(), o)
	}
	return cmd
}

// Run checks, prints and judges.
func Run(ctx context.Context, w io.Writer, o Options) error {
	report := doctor.Run(ctx, o.Config, o.Instances)
	if ctx.Err() != nil {
		return cli.WithCode(cli.Interrupted, errors.New("interrupted; nothing was changed"))
	}
	if err := printReport(w, o.Output, report); err != nil {
		return err
	}
	if n := report.Count(doctor.Fail); n > 0 {
		return fmt.Errorf("%d of %d checks failed", n, len(report.Findings))
	}
	return nil
}

func printReport(w io.Writer, output cli.Output, r *doctor.Report) error {
	if output == cli.JSON {
		return json.NewEncoder(w).Encode(struct {
			OK       bool             `json:"ok"`
			Findings []doctor.Finding `json:"findings"`
		}{r.Count(doctor.Fail) == 0, r.Findings})
	}
	for _, f := range r.Findings {
		text := fmt.Sprintf("%-4s  %s: %s\n      %s\n", f.State, f.Check, strings.Join(strings.Fields(f.Found), " "), f.Means)
		if f.Do != "" {
			text += "      -> " + f.Do + "\n"
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%d ok, %s, %s\n", r.Count(doctor.OK),
		cli.Count(int64(r.Count(doctor.Warn)), "warning"), cli.Count(int64(r.Count(doctor.Fail)), "failure"))
	return err
}
