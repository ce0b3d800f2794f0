// Package reconcile is the command `likectl reconcile`.
package reconcile

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"likectl/cmd/app"
	"likectl/cmd/cli"
	"likectl/pkg/config"
	"likectl/pkg/likes"
	"likectl/pkg/reconcile"
)

// Options are what `likectl reconcile` is told.
type Options struct {
	// Items are the TYPE:ID of the items to check; none: all counters.
	Items   []string
	Counter likes.Counter
	DryRun  bool
	// PerSecond bounds how many counters are compared in a second.
	PerSecond int
	Output    cli.Output
	// Admin is the URL of a running server's admin listener; empty: the command
	// opens the stores itself.
	Admin  string
	Config config.Config
}

// NewCmd returns the command.
func NewCmd() *cobra.Command { return newCmd(run) }

func newCmd(run func(ctx context.Context, out, errOut io.Writer, o Options) error) *cobra.Command {
	var o Options
	var all bool
	var counter string
	cmd := &cobra.Command{
		Use:   "reconcile {--dry-run | --all | --item TYPE:ID}",
		Short: "Compare counters with the likes they count, and repair those that differ",
		Long: `Compare every counter with the number of likes it stands for, list those that
differ, and repair them. It is safe while the service runs: a repair adds the
difference that one snapshot shows, so no like that comes meanwhile is lost or
counted twice.

  --dry-run       compare all counters, repair nothing
  --all           compare all counters, repair those that differ
  --item TYPE:ID  only this item; may be given several times

CAUSE says what is known of it: missing (the counter's row is gone), excess (above
its likes: raised, or likes were removed) or deficit (below: lowered, or likes were
added). Edge and counter change in one transaction, so each is the work of
something else than likectl. Of many differences the ten largest are listed again.
Through a server that has compared all counters before and left them right, the
report says when that was: no difference is older.

The exit code is 0 if nothing differed or all was repaired, 4 if --dry-run found
a difference.

While a server runs on the data folder, reconcile through it with --admin.`,
		Example: `  likectl reconcile --dry-run
  likectl reconcile --all -c configs/tier1.yaml
  likectl reconcile --item post:42 --item reel:7 --admin http://127.0.0.1:9090
  likectl reconcile --item post:42 --counter saves --dry-run --output json`,
		Args: cobra.NoArgs,
	}
	stores := app.AddStoreFlags(cmd)
	set := cmd.Flags()
	set.BoolVar(&o.DryRun, "dry-run", false, "list differences, repair nothing")
	set.BoolVar(&all, "all", false, "compare and repair all counters")
	set.StringArrayVar(&o.Items, "item", nil, "compare and repair the counter of this `TYPE:ID` only, such as post:42")
	set.StringVar(&counter, "counter", likes.Likes.String(), "which counter of the items {likes|saves}")
	set.IntVar(&o.PerSecond, "max-rate", reconcile.DefaultPerSecond, "counters compared in a second at most, 1 to 10000000")
	set.StringVar(&o.Admin, "admin", "", "reconcile in the running server with this admin listener, such as http://127.0.0.1:9090")
	cli.OutputFlag(cmd, &o.Output)
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("counter",
		cobra.FixedCompletions([]string{likes.Likes.String(), likes.Saves.String()}, cobra.ShellCompDirectiveNoFileComp)))
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if err := check(o, all, set.Changed("counter")); err != nil {
			return err
		}
		if o.Counter, err = likes.ParseSetCounter(counter); err != nil {
			return cli.Usagef("--counter: %w", err)
		}
		if o.Config, err = stores.LoadFor(o.Admin); err != nil {
			return err
		}
		return run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), o)
	}
	return cmd
}

// check refuses to guess whether counters are to be changed.
func check(o Options, all, counter bool) error {
	switch {
	case all && len(o.Items) > 0:
		return cli.Usagef("--all and --item exclude each other: leave out one of them")
	case !all && !o.DryRun && len(o.Items) == 0:
		return cli.Usagef("say what to do: --dry-run lists the counters that differ from their likes, " +
			"--all repairs them too, --item TYPE:ID repairs one item's")
	case counter && len(o.Items) == 0:
		return cli.Usagef("--counter goes with --item; a walk over all covers every counter")
	case o.PerSecond < 1 || o.PerSecond > reconcile.MaxPerSecond:
		return cli.Usagef("--max-rate is %d, want 1 to %d", o.PerSecond, reconcile.MaxPerSecond)
	case len(o.Items) > reconcile.MaxKeys:
		return cli.Usagef("--item is given %d times, want at most %d; use --all", len(o.Items), reconcile.MaxKeys)
	default:
		return nil
	}
}

// parseItem reads TYPE:ID.
func parseItem(text string, types likes.ItemTypes) (likes.Item, error) {
	name, id, ok := strings.Cut(text, ":")
	if !ok {
		return likes.Item{}, cli.Usagef("--item %s: want TYPE:ID, such as %s:42", text, example(types))
	}
	kind, ok := types.Type(name)
	if !ok {
		return likes.Item{}, cli.Usagef("--item %s: %q is not a configured item type; want TYPE:ID, such as %s:42", text, name, example(types))
	}
	n, err := likes.ParseID(id)
	if err != nil {
		return likes.Item{}, cli.Usagef("--item %s: %w", text, err)
	}
	return likes.Item{Type: kind, ID: likes.ItemID(n)}, nil
}

// example is the name of a configured item type, the first one.
func example(types likes.ItemTypes) string {
	for kind := likes.ItemType(1); kind > 0; kind++ {
		if _, ok := types.Type(types.Name(kind)); ok {
			return types.Name(kind)
		}
	}
	return "TYPE"
}
