// Package imports is the command `likectl import` (whose name is a word of the
// language).
package imports

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"likectl/cmd/app"
	"likectl/cmd/cli"
	"likectl/pkg/config"
	"likectl/pkg/ingest"
	"likectl/pkg/likes"
)

// Options are what `likectl import` is told.
type Options struct {
	// Path is the file, - for standard input.
	Path   string
	Format ingest.Format
	// Skip goes on behind bad lines.
	Skip   bool
	DryRun bool
	// Batch is the number of lines in a call, 1 to likes.MaxApply.
	Batch  int
	Output cli.Output
	// Admin is the URL of a running server's admin listener; empty: the command
	// opens the stores itself.
	Admin string
	// Create: an embedded store may be new.
	Create bool
	Config config.Config
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
	var format, onError string
	cmd := &cobra.Command{
		Use:   "import FILE|-",
		Short: "Import likes and unlikes from a CSV or JSONL file",
		Long: `Import likes and unlikes from a CSV file with a header, or from JSONL, plain or
gzipped; - reads standard input. Fields, in any order:

  user_id, item_type, item_id   required
  action                        like (default) or unlike
  liked_at                      RFC 3339, as Postgres prints it, or seconds since 1970
  counter                       likes (default) or saves

Of the lines on one edge (one user and item) the one with the greatest liked_at
wins, of equal ones the later line. Lines without a liked_at, or with one before
2020, count as older than all others, in the order of the file. What the service
has from later than a line wins over the line.

Importing a file twice changes nothing the second time, so an import that broke
off is completed by running it again.

While a server runs on the data folder, import through it with --admin.`,
		Example: `  likectl import likes.csv --data likectl-data --create
  likectl import likes.jsonl.gz --dry-run
  zcat old.csv.gz | likectl import - --on-error skip --output json
  likectl import likes.csv --admin http://127.0.0.1:9090
  likectl import likes.csv -c configs/tier1.yaml`,
		Args: cobra.ExactArgs(1),
	}
	stores := app.AddStoreFlags(cmd)
	set := cmd.Flags()
	set.StringVar(&format, "format", "", "form of the input {csv|jsonl}; default: by its first character")
	set.StringVar(&onError, "on-error", "stop", "what to do at a bad line {stop|skip}")
	set.BoolVar(&o.DryRun, "dry-run", false, "read and check the whole input, apply nothing")
	set.IntVar(&o.Batch, "batch", ingest.DefaultConfig().Batch, "lines in one call, 1 to 1000")
	set.StringVar(&o.Admin, "admin", "", "import through the running server with this admin listener, such as http://127.0.0.1:9090")
	set.BoolVar(&o.Create, "create", false, "make a new SQLite store in the data folder if there is none")
	cli.OutputFlag(cmd, &o.Output)
	for flag, values := range map[string][]string{"format": {"csv", "jsonl"}, "on-error": {"stop", "skip"}} {
		cobra.CheckErr(cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)))
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		o.Path = args[0]
		if o.Format, err = ingest.ParseFormat(format); err != nil {
			return cli.Usagef("--format: %w", err)
		}
		switch onError {
		case "stop", "skip":
			o.Skip = onError == "skip"
		default:
			return cli.Usagef("--on-error is %q, want stop or skip", onError)
		}
		if o.Batch < 1 || o.Batch > likes.MaxApply {
			return cli.Usagef("--batch is %d, want 1 to %d", o.Batch, likes.MaxApply)
		}
		if o.Create && o.Admin != "" {
			return cli.Usagef("--admin and --create exclude each other: the server has its store")
		}
		if o.Config, err = stores.LoadFor(o.Admin); err != nil {
			return err
		}
		return run(cmd.Context(), streams{cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()}, o)
	}
	return cmd
}

// name is what messages call the input.
func (o Options) name() string {
	if o.Path == "-" {
		return "standard input"
	}
	return strings.TrimPrefix(o.Path, "./")
}
