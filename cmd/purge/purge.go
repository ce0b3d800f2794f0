// Package purge is the command `likectl purge`.
package purge

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"likectl/cmd/app"
	"likectl/cmd/cli"
	"likectl/cmd/erase"
	"likectl/pkg/config"
)

// Options are what `likectl purge` is told.
type Options struct {
	// Path is the list of users, - for standard input.
	Path string
	// Skip goes on behind bad lines.
	Skip   bool
	DryRun bool
	// PerSecond bounds how many rows are erased in a second.
	PerSecond int
	Output    cli.Output
	// Admin is the URL of a running server's admin listener; empty: the command
	// opens the store itself.
	Admin  string
	Config config.Config
}

// name is what messages call the list.
func (o Options) name() string {
	if o.Path == "-" {
		return "standard input"
	}
	return strings.TrimPrefix(o.Path, "./")
}

// streams are the command's ends.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// NewCmd returns the command.
func NewCmd() *cobra.Command { return newCmd(run) }

func newCmd(run func(context.Context, streams, Options) error) *cobra.Command {
	var o Options
	var onError string
	cmd := &cobra.Command{
		Use:   "purge --users FILE|-",
		Short: "Erase many users, such as fake accounts; it cannot be undone",
		Long: `Erase all users of a list, as likectl erase erases one: their likes, saves, blocks
and follows, for ever. It cannot be undone.

The list has one id a line, or is CSV with the id in the first column, whose
header may be user_id; it may be gzipped, and - reads standard input. Lines that
begin with # say nothing. The whole list is read before anything is changed.

First it is recorded of all users that they are erased: from then on nothing is
applied for any of them. Then their rows go, user by user, at a rate that others
do not notice. What breaks off is gone on with by running the command again, by
likectl erase resume, or by a server when it starts.

While a server runs on the data folder, purge through it with --admin.`,
		Example: `  likectl purge --users fakes.txt --dry-run
  likectl purge --users fakes.csv --on-error skip --admin http://127.0.0.1:9090
  likectl purge --users - -c configs/tier1.yaml --max-rate 1000`,
		Args: cobra.NoArgs,
	}
	stores := app.AddStoreFlags(cmd)
	set := cmd.Flags()
	set.StringVar(&o.Path, "users", "", "the list of users: a `FILE`, - for standard input")
	set.StringVar(&onError, "on-error", "stop", "what to do at a bad line {stop|skip}")
	set.BoolVar(&o.DryRun, "dry-run", false, "read the list and say what there is of its users, erase nothing")
	set.StringVar(&o.Admin, "admin", "", "purge in the running server with this admin listener, such as http://127.0.0.1:9090")
	erase.RateFlag(set, &o.PerSecond)
	cli.OutputFlag(cmd, &o.Output)
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("on-error",
		cobra.FixedCompletions([]string{"stop", "skip"}, cobra.ShellCompDirectiveNoFileComp)))
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		switch {
		case o.Path == "":
			return cli.Usagef("--users is missing, want a file with user ids, or - for standard input; nothing was changed")
		case onError != "stop" && onError != "skip":
			return cli.Usagef("--on-error is %q, want stop or skip", onError)
		}
		o.Skip = onError == "skip"
		if err := erase.CheckRate(o.PerSecond); err != nil {
			return err
		}
		if o.Config, err = stores.LoadFor(o.Admin); err != nil {
			return err
		}
		return run(cmd.Context(), streams{cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()}, o)
	}
	return cmd
}
