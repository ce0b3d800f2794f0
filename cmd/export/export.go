// Package export is the command `likectl export`.
package export

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"likectl/cmd/app"
	"likectl/cmd/cli"
	"likectl/pkg/config"
	"likectl/pkg/export"
	"likectl/pkg/likes"
	"likectl/pkg/progress"
)

// Options are what `likectl export` is told.
type Options struct {
	// Path is the file, - for standard output.
	Path   string
	Format export.Format
	// Counter and User leave out the edges of others; 0: of all.
	Counter likes.Counter
	User    likes.UserID
	// Pseudonymise puts pseudonyms in place of user ids.
	Pseudonymise Pseudonymise
	// Admin is the URL of a running server's admin listener; empty: the command
	// opens the stores itself.
	Admin  string
	Config config.Config
}

// NewCmd returns the command.
func NewCmd() *cobra.Command { return newCmd(run) }

func newCmd(run func(ctx context.Context, out, errOut io.Writer, o Options) error) *cobra.Command {
	var o Options
	var format, counter, user string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write all likes and saves, or one user's, as CSV, JSONL or Parquet",
		Long: `Write all likes and saves, or those of one user, in the form that likectl import
reads: user_id, item_type, item_id, liked_at, counter. Imported into an empty
store they give the same counts. Parquet, for analysis, has the same columns
(ids as integers, times in microseconds, zstd) and is not imported again.
Progress and the result go to standard error.

It is safe while the service runs. Every page of the export is a snapshot, all
of them together are not: what is liked from the beginning to the end of the
export is in it exactly once, what changes meanwhile is in it or not.

A file appears whole or not at all, readable by its owner only, in place of one
with the same name; with a name that ends in .gz it is gzipped (Parquet is
compressed anyway). On standard output, Parquet that broke off has no footer and
is refused by every reader; of CSV and JSONL the exit code tells.

While a server runs on the data folder, export through it with --admin.
` + pseudonymiseHelp,
		Example: `  likectl export -o likes.csv.gz
  likectl export --user 42 --format jsonl
  likectl export --counter saves -o saves.jsonl -c configs/tier1.yaml
  likectl export -o likes.parquet
  likectl export --pseudonymise --salt-file likes.salt --rotate-after 30d -o likes.parquet
  likectl export -o likes.csv --admin http://127.0.0.1:9090`,
		Args: cobra.NoArgs,
	}
	stores := app.AddStoreFlags(cmd)
	pseudonymise := addPseudonymise(cmd)
	set := cmd.Flags()
	set.StringVarP(&o.Path, "out", "o", "-", "`FILE` to write, - for standard output")
	set.StringVar(&format, "format", "", "form of the output {csv|jsonl|parquet}; default: what the file's name ends with, else csv")
	set.StringVar(&counter, "counter", "", "only this counter's edges {likes|saves}; default: all")
	set.StringVar(&user, "user", "", "only the edges of the user with this `ID`")
	set.StringVar(&o.Admin, "admin", "", "export from the running server with this admin listener, such as http://127.0.0.1:9090")
	for flag, values := range map[string][]string{
		"format": export.Formats(), "counter": {likes.Likes.String(), likes.Saves.String()},
	} {
		cobra.CheckErr(cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)))
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if o.Format, err = formatOf(format, o.Path, cmd.OutOrStdout()); err != nil {
			return err
		}
		if counter != "" {
			if o.Counter, err = likes.ParseSetCounter(counter); err != nil {
				return cli.Usagef("--counter: %w", err)
			}
		}
		if set.Changed("user") {
			id, err := likes.ParseID(user)
			if err != nil {
				return cli.Usagef("--user: %w", err)
			}
			o.User = likes.UserID(id)
		}
		if o.Path == "" {
			return cli.Usagef("--out is empty, want a file, or - for standard output")
		}
		if o.Pseudonymise, err = pseudonymise(o); err != nil {
			return err
		}
		if o.Config, err = stores.LoadFor(o.Admin); err != nil {
			return err
		}
		return run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), o)
	}
	return cmd
}

// formatOf returns the named format, or the one that the file's name tells, for
// an output that takes it.
func formatOf(name, path string, out io.Writer) (f export.Format, err error) {
	f = export.FormatOf(path)
	if name != "" {
		if f, err = export.ParseFormat(name); err != nil {
			return "", cli.Usagef("--format: %w", err)
		}
	}
	switch {
	case f != export.Parquet:
	case strings.HasSuffix(path, ".gz"):
		return "", cli.Usagef("--out %s: no reader of Parquet takes it gzipped, and it is compressed already; leave out .gz", path)
	case path == "-" && progress.IsTerminal(out):
		return "", cli.Usagef("--format parquet is not text and standard output is a terminal; name a file with --out")
	}
	return f, nil
}

// name is what messages call the output.
func (o Options) name() string {
	if o.Path == "-" {
		return "standard output"
	}
	return o.Path
}
