// Package serve is the command `likectl serve`.
package serve

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"likectl/cmd/app"
	"likectl/cmd/cli"
	"likectl/pkg/config"
)

// Options are what `likectl serve` is told.
type Options struct {
	Config config.Config
	// Explicit: a tier or a configuration file was named, so the real backends
	// are wanted and SQLite must not silently take their place.
	Explicit bool
	Embedded bool
}

// NewCmd returns the command; run is what it does with its options.
func NewCmd() *cobra.Command { return newCmd(Run) }

func newCmd(run func(context.Context, io.Writer, Options) error) *cobra.Command {
	var embedded bool
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
	cmd.Flags().BoolVar(&embedded, "embedded", false, "keep the data in the data folder although a tier or file is named")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := flags.Load()
		if err != nil {
			return err
		}
		return run(cmd.Context(), cmd.ErrOrStderr(), Options{
			Config: cfg, Embedded: embedded, Explicit: flags.File != "" || cmd.Flags().Changed("tier"),
		})
	}
	return cmd
}

// Run serves until the context ends, then drains and closes everything. The
// banner and the log go to w.
func Run(ctx context.Context, w io.Writer, o Options) error {
	cfg := o.Config
	if err := check(&cfg, o); err != nil {
		return err
	}
	log, err := app.Logger(cfg.Log, w)
	if err != nil {
		return err
	}
	server, err := app.Open(ctx, cfg, log)
	if err != nil {
		return err
	}
	if err := server.Banner(w); err != nil {
		log.Warn("banner not printed", "error", err)
	}
	return server.Serve(ctx)
}

// check refuses to guess between the embedded store and a real one.
func check(cfg *config.Config, o Options) error {
	switch {
	case o.Embedded && cfg.Postgres.DSN != "":
		return cli.Usagef("--embedded and postgres.dsn exclude each other: leave out one of them")
	case o.Explicit && !o.Embedded && cfg.Postgres.DSN == "":
		return cli.Usagef("tier %d needs a Postgres: set postgres.dsn in a file given with -c, LIKECTL_POSTGRES_DSN or --dsn; "+
			"or add --embedded to try it on SQLite in %s", cfg.Tier, cfg.Data)
	default:
		return nil
	}
}
