// Package token is the command `likectl token`.
package token

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"likectl/cmd/cli"
	"likectl/pkg/auth"
	"likectl/pkg/config"
	"likectl/pkg/datadir"
	"likectl/pkg/likes"
)

// Options are what `likectl token` is told.
type Options struct {
	User  likes.UserID
	Scope auth.Scope
	TTL   time.Duration
	// Data is the folder with the secret, which may be made with Create; Auth
	// says for whom tokens are made.
	Data   string
	Create bool
	Auth   config.Auth
}

// flags are the options as they are typed.
type flags struct {
	user, scope, file, data string
	ttl                     time.Duration
	create                  bool
}

// NewCmd returns the command.
func NewCmd() *cobra.Command { return newCmd(Run) }

func newCmd(run func(io.Writer, Options) error) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "token --user ID",
		Short: "Print a token for the API and nothing else",
		Long: `Print a token for the API and nothing else.

It is signed with the secret in the data folder, so it is good for every server
that uses this folder. A running server need not be asked. Whoever has the token
can act for the user until it expires; there is no way to take it back but a new
secret.`,
		Example: `  # act as user 42 for a day
  likectl token --user 42

  # a backend that names the user in each call
  likectl token --user 1 --scope service --ttl 720h

  # in a shell
  curl -H "Authorization: Bearer $(likectl token --user 42)" 'localhost:8080/v1/has_liked?item_ids=1&item_type=post'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.options(cmd.Flags().Changed)
			if err != nil {
				return err
			}
			return run(cmd.OutOrStdout(), o)
		},
	}
	set := cmd.Flags()
	set.StringVar(&f.user, "user", "", "the token speaks for the user with this `ID`")
	set.StringVar(&f.scope, "scope", auth.User.String(), "what it is good for {user|service|admin}")
	set.DurationVar(&f.ttl, "ttl", 24*time.Hour, "how long it is valid, at least 1s")
	set.StringVar(&f.data, "data", config.Default().Data, "data folder with the secret")
	set.BoolVar(&f.create, "create", false, "make a data folder with a new secret if there is none")
	set.StringVarP(&f.file, "config", "c", "", "configuration file, for its data folder, issuer and audience")
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("scope", cobra.FixedCompletions(
		[]string{auth.User.String(), auth.Service.String(), auth.Admin.String()}, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

// options parses what was typed.
func (f *flags) options(given func(string) bool) (Options, error) {
	if !given("user") {
		return Options{}, cli.Usagef("--user is missing: whose token shall it be?")
	}
	user, err := likes.ParseID(f.user)
	if err != nil {
		return Options{}, cli.Usagef("--user: %w", err)
	}
	scope, err := auth.ParseScope(f.scope)
	if err != nil {
		return Options{}, cli.Usagef("--scope: %w", err)
	}
	if f.ttl < time.Second || f.ttl > auth.MaxTTL {
		return Options{}, cli.Usagef("--ttl: %v, want 1s to %v", f.ttl, auth.MaxTTL)
	}
	overrides := map[string]any{}
	if given("data") {
		overrides["data"] = f.data
	}
	cfg, err := config.Load(f.file, overrides)
	switch {
	case errors.Is(err, likes.ErrInvalid):
		return Options{}, cli.WithCode(cli.Usage, err)
	case err != nil:
		return Options{}, err
	}
	return Options{User: likes.UserID(user), Scope: scope, TTL: f.ttl, Data: cfg.Data, Create: f.create, Auth: cfg.Auth}, nil
}

// Run prints a token and a line break to w.
func Run(w io.Writer, o Options) error {
	secret, err := loadSecret(o)
	if err != nil {
		return err
	}
	authority, err := auth.New(auth.Config{
		Secret: secret, Issuer: o.Auth.Issuer, Audience: o.Auth.Audience, Leeway: o.Auth.Leeway, CacheSize: 1,
	})
	if err != nil {
		return err
	}
	token, err := authority.Mint(o.User, o.Scope, o.TTL)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, token)
	return err
}

func loadSecret(o Options) ([]byte, error) {
	if o.Create {
		return datadir.Secret(o.Data)
	}
	secret, err := datadir.LoadSecret(o.Data)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w, or add --create", err)
	}
	return secret, err
}
