// Package serve is the command `likectl serve`.
package serve

import (
	"context"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"likectl/cmd/app"
	"likectl/cmd/cli"
	"likectl/pkg/config"
	"likectl/pkg/progress"
)

// Options are what `likectl serve` is told.
type Options struct {
	Config config.Config
	// AdoptSecret makes the secret in the data folder that of all instances.
	AdoptSecret bool
}

// NewCmd returns the command; run is what it does with its options.
func NewCmd() *cobra.Command { return newCmd(Run) }

func newCmd(run func(context.Context, io.Writer, Options) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the like service",
		Long: `Run the like service until SIGINT or SIGTERM.

Alone, it needs nothing: it keeps its data in ./likectl-data and prints a curl
line to paste. With a configuration file it runs on the backends named there.`,
		Example: `  # a like service on this machine, nothing else installed
  likectl serve

  # tier 1 on Postgres
  likectl schema up -c configs/tier1.yaml
  likectl serve --tier 1 -c configs/tier1.yaml`,
		Args: cobra.NoArgs,
	}
	flags := app.AddStoreFlags(cmd)
	app.AddServeFlags(cmd, flags)
	adopt := cmd.Flags().Bool("adopt-secret", false, "make the secret in the data folder that of all instances on the database")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := flags.Load()
		if err != nil {
			return err
		}
		return run(cmd.Context(), cmd.ErrOrStderr(), Options{Config: cfg, AdoptSecret: *adopt})
	}
	return cmd
}

// Run serves until the context ends, then drains and closes everything. The
// banner and the log go to w. As JSON everything is log, the last error too.
func Run(ctx context.Context, w io.Writer, o Options) error {
	log, err := app.Logger(o.Config.Log, w)
	if err != nil {
		return err
	}
	err = run(ctx, w, o, log)
	if err != nil && o.Config.Log.Format == "json" {
		log.Error("likectl has failed", "error", err, "exit_code", cli.CodeOf(err))
		err = cli.Reported(err)
	}
	return err
}

func run(ctx context.Context, w io.Writer, o Options, log *slog.Logger) error {
	server, err := app.Open(ctx, o.Config, log, o.AdoptSecret)
	if err != nil {
		return err
	}
	// The banner is for people who try things out, not for a log of a fleet.
	if o.Config.Log.Format == "json" || o.Config.Postgres.DSN != "" && !progress.IsTerminal(w) {
		server.Announce()
	} else if err := server.Banner(w, progress.IsTerminal(w)); err != nil {
		log.Warn("banner not printed", "error", err)
	}
	return server.Serve(ctx)
}
