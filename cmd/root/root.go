// Package root puts the commands together.
package root

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"likectl/cmd/bench"
	"likectl/cmd/cli"
	"likectl/cmd/config"
	"likectl/cmd/doctor"
	"likectl/cmd/erase"
	"likectl/cmd/export"
	"likectl/cmd/imports"
	"likectl/cmd/man"
	"likectl/cmd/purge"
	"likectl/cmd/reconcile"
	"likectl/cmd/schema"
	"likectl/cmd/serve"
	"likectl/cmd/tiers"
	"likectl/cmd/token"
	"likectl/cmd/top"
	"likectl/pkg/telemetry"
)

// NewCmd returns likectl with all its commands. Errors of flags and arguments
// carry the exit code 2.
func NewCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "likectl",
		Short: "A like counter that is right at any size",
		Long: `likectl counts likes: "user U likes item X, once" and "X has N likes".

Start with likectl serve: it needs nothing else and prints a curl line to paste.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Version:       version(),
	}
	cmd.SetHelpCommand(help())
	cmd.AddCommand(
		serve.NewCmd(),
		token.NewCmd(),
		imports.NewCmd(),
		export.NewCmd(),
		reconcile.NewCmd(),
		erase.NewCmd(),
		purge.NewCmd(),
		erase.NewMergeCmd(),
		schema.NewCmd(),
		config.NewCmd(),
		doctor.NewCmd(),
		top.NewCmd(),
		bench.NewCmd(),
		tiers.NewCmd(),
		man.NewCmd(),
		exitCodes(),
		&cobra.Command{
			Use: "version", Short: "What this program was built from", Args: cobra.NoArgs,
			RunE: func(c *cobra.Command, _ []string) error {
				_, err := fmt.Fprintln(c.OutOrStdout(), "likectl version", version())
				return err
			},
		},
	)
	asUsageErrors(cmd)
	return cmd
}

// asUsageErrors gives every command's flag and argument errors the exit code 2
// and says where help is.
func asUsageErrors(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return cli.Usagef("%w; see %s --help", err, c.CommandPath())
	})
	if args := cmd.Args; args != nil {
		cmd.Args = func(c *cobra.Command, given []string) error {
			if err := args(c, given); err != nil {
				return cli.Usagef("%w; see %s --help", err, c.CommandPath())
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		asUsageErrors(sub)
	}
}

func version() string {
	b := telemetry.ReadBuild()
	return fmt.Sprintf("%s (revision %s, %s)", b.Version, b.Revision, b.Go)
}

// help is cobra's, but for an unknown topic being an error.
func help() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		RunE: func(c *cobra.Command, args []string) error {
			topic, rest, err := c.Root().Find(args)
			if err != nil || topic == nil || len(rest) > 0 {
				return cli.Usagef("unknown help topic %q; see likectl --help", strings.Join(args, " "))
			}
			topic.InitDefaultHelpFlag()
			return topic.Help()
		},
	}
}

func exitCodes() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What the exit codes mean",
		Long: `The exit codes of every command:

  0    done
  1    a store, file or server failed; the message says what was applied
  2    flags, arguments, configuration or input are wrong; nothing was changed
       unless the message says so
  3    a measured value missed a threshold
  4    a verification found a difference
  130  stopped by a signal before the work was done; likectl serve, whose work
       ends with SIGINT or SIGTERM, ends with 0`,
	}
}
