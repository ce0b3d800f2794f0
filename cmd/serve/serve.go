// Package serve is the command `likectl serve`.
package serve

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"likectl/cmd/app"
	"likectl/pkg/config"
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
	d := config.Default()
	set := cmd.Flags()
	set.Int("tier", d.Tier, "architecture {1|2|3|4|5}; 1 is built")
	set.String("listen", d.Listen, "address of the API")
	adopt := set.Bool("adopt-secret", false, "make the secret in the data folder that of all instances on the database")
	set.String("admin-listen", d.AdminListen, "loopback address of metrics, profiles and the admin API")
	for key, name := range map[string]string{"tier": "tier", "listen": "listen", "admin_listen": "admin-listen"} {
		flags.Override(key, set.Lookup(name))
	}
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
// banner and the log go to w.
func Run(ctx context.Context, w io.Writer, o Options) error {
	cfg := o.Config
	log, err := app.Logger(cfg.Log, w)
	if err != nil {
		return err
	}
	server, err := app.Open(ctx, cfg, log, o.AdoptSecret)
	if err != nil {
		return err
	}
	if err := server.Banner(w); err != nil {
		log.Warn("banner not printed", "error", err)
	}
	return server.Serve(ctx)
}
