// Package erase is the commands `likectl erase` and `likectl merge-users`: a merge
// is an erasure whose likes go to another user.
package erase

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"likectl/cmd/app"
	"likectl/cmd/cli"
	"likectl/pkg/config"
	"likectl/pkg/erase"
	"likectl/pkg/likes"
)

// Options are what the commands are told.
type Options struct {
	// User is erased, or merged into Into unless that is 0.
	User, Into likes.UserID
	DryRun     bool
	// Receipt is the file that the receipt is written to, or is read from to be
	// verified; empty: none.
	Receipt string
	// PerSecond bounds how many rows are erased in a second.
	PerSecond int
	Output    cli.Output
	// Admin is the URL of a running server's admin listener; empty: the command
	// opens the store itself.
	Admin  string
	Config config.Config
}

// runFunc does what a command was told.
type runFunc func(ctx context.Context, out, errOut io.Writer, o Options) error

// NewCmd returns the command erase.
func NewCmd() *cobra.Command { return newCmd(run, verify, status, resume) }

func newCmd(run, verify, status, resume runFunc) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "erase --user ID",
		Short: "Erase a user, with a receipt; it cannot be undone",
		Long: `Erase a user for ever: all likes and saves, those that were taken back, blocks
and follows. Counters fall by what goes, and items of the user have no owner any
more. It cannot be undone.

First it is recorded that the user is erased. From then on nothing is applied for
the user, from wherever it comes: a request gets 403 erased, an import passes the
lines by. Then the rows go, in small steps and at a rate that others do not
notice, while the service runs. What breaks off is gone on with by running the
command again, by likectl erase resume, or by a server when it starts. Erasing
somebody again changes nothing and prints the same receipt.

The receipt is signed with the secret in the data folder. It names the user by a
hash that only this store can match with an id, and the days on which the last
logs and backups from before are gone, as erase.log_retention and
erase.backup_retention in the configuration say.

While a server runs on the data folder, erase through it with --admin.`,
		Example: `  likectl erase --user 42 --dry-run
  likectl erase --user 42 --receipt 42.json
  likectl erase verify --user 42 --receipt 42.json
  likectl erase status
  likectl erase --user 42 -c configs/tier1.yaml --max-rate 1000`,
		Args: cobra.NoArgs,
	}
	stores := app.AddStoreFlags(cmd)
	cmd.PersistentFlags().StringVar(&o.Admin, "admin", "", "work in the running server with this admin listener, such as http://127.0.0.1:9090")
	// prepare gives a command what it shares with the others, and its user.
	prepare := func(cmd *cobra.Command, user *string, run runFunc) {
		cli.OutputFlag(cmd, &o.Output)
		cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
			if user != nil {
				if o.User, err = parseUser("--user", *user); err != nil {
					return err
				}
			}
			if cmd.Flags().Lookup("max-rate") != nil {
				if err := CheckRate(o.PerSecond); err != nil {
					return err
				}
			}
			if o.Config, err = stores.LoadFor(o.Admin); err != nil {
				return err
			}
			return run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), o)
		}
	}

	var erased, verified string
	set := cmd.Flags()
	set.StringVar(&erased, "user", "", "erase the user with this `ID`")
	set.BoolVar(&o.DryRun, "dry-run", false, "say what there is of the user, erase nothing")
	set.StringVar(&o.Receipt, "receipt", "", "write the receipt to this `FILE`, as JSON")
	RateFlag(set, &o.PerSecond)
	prepare(cmd, &erased, run)

	check := &cobra.Command{
		Use:   "verify --user ID",
		Short: "Check that nothing is left of an erased user",
		Long: `Check that a user is erased: that the store has the record, that no row names the
user, and with --receipt that the receipt is signed by this store's instances and
says what the record says. The exit code is 4 if not, with what was found.`,
		Example: "  likectl erase verify --user 42 --receipt 42.json",
		Args:    cobra.NoArgs,
	}
	check.Flags().StringVar(&verified, "user", "", "the user with this `ID`")
	check.Flags().StringVar(&o.Receipt, "receipt", "", "check this receipt, too: a `FILE` that erase has written")
	prepare(check, &verified, verify)

	list := &cobra.Command{
		Use:     "status",
		Short:   "List the erasures and merges that are not finished",
		Example: "  likectl erase status --output json",
		Args:    cobra.NoArgs,
	}
	prepare(list, nil, status)

	again := &cobra.Command{
		Use:     "resume",
		Short:   "Go on with all erasures and merges that are not finished",
		Example: "  likectl erase resume --admin http://127.0.0.1:9090",
		Args:    cobra.NoArgs,
	}
	RateFlag(again.Flags(), &o.PerSecond)
	prepare(again, nil, resume)
	cmd.AddCommand(check, list, again)
	return cmd
}

// NewMergeCmd returns the command merge-users.
func NewMergeCmd() *cobra.Command { return newMergeCmd(run) }

func newMergeCmd(run runFunc) *cobra.Command {
	var o Options
	var from, into string
	cmd := &cobra.Command{
		Use:   "merge-users --from ID --into ID",
		Short: "Give a user's likes to another user and erase the first; it cannot be undone",
		Long: `Move everything that one user has to another one: two accounts of one person
become one. What both like is liked once, since the earlier of the two, and its
count falls by one; blocks, follows and items move too. It cannot be undone.

The first user is erased by it, with a receipt: nothing is applied for that id any
more. The second one may go on liking meanwhile. What breaks off is gone on with
by running the command again, by likectl erase resume, or by a server when it
starts.

While a server runs on the data folder, merge through it with --admin.`,
		Example: `  likectl merge-users --from 41 --into 42 --dry-run
  likectl merge-users --from 41 --into 42 --admin http://127.0.0.1:9090`,
		Args: cobra.NoArgs,
	}
	stores := app.AddStoreFlags(cmd)
	set := cmd.Flags()
	set.StringVar(&from, "from", "", "the user with this `ID` is merged and erased")
	set.StringVar(&into, "into", "", "into the user with this `ID`")
	set.BoolVar(&o.DryRun, "dry-run", false, "say what there is of the first user, change nothing")
	set.StringVar(&o.Receipt, "receipt", "", "write the receipt to this `FILE`, as JSON")
	set.StringVar(&o.Admin, "admin", "", "merge in the running server with this admin listener, such as http://127.0.0.1:9090")
	RateFlag(set, &o.PerSecond)
	cli.OutputFlag(cmd, &o.Output)
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if o.User, err = parseUser("--from", from); err != nil {
			return err
		}
		if o.Into, err = parseUser("--into", into); err != nil {
			return err
		}
		if o.User == o.Into {
			return cli.Usagef("--from and --into are the same user; nothing was changed")
		}
		if err := CheckRate(o.PerSecond); err != nil {
			return err
		}
		if o.Config, err = stores.LoadFor(o.Admin); err != nil {
			return err
		}
		return run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), o)
	}
	return cmd
}

// RateFlag adds --max-rate.
func RateFlag(set *pflag.FlagSet, perSecond *int) {
	set.IntVar(perSecond, "max-rate", erase.DefaultPerSecond, fmt.Sprintf("rows erased in a second at most, 1 to %d", erase.MaxPerSecond))
}

// CheckRate refuses a --max-rate out of range.
func CheckRate(n int) error {
	if n < 1 || n > erase.MaxPerSecond {
		return cli.Usagef("--max-rate is %d, want 1 to %d", n, erase.MaxPerSecond)
	}
	return nil
}

func parseUser(flag, text string) (likes.UserID, error) {
	if text == "" {
		return 0, cli.Usagef("%s is missing, want the id of a user; nothing was changed", flag)
	}
	id, err := likes.ParseID(text)
	if err != nil {
		return 0, cli.Usagef("%s: %w; nothing was changed", flag, err)
	}
	return likes.UserID(id), nil
}
