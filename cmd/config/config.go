// Package config is the command `likectl config`.
package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"likectl/cmd/app"
	"likectl/cmd/cli"
	"likectl/pkg/config"
	"likectl/pkg/likes"
)

// NewCmd returns the command with its subcommands.
func NewCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show or check the configuration; nothing is opened",
		Long: `Show or check the configuration that a server would have with the same flags,
environment and file. The first that sets a key wins: flag, environment
(LIKECTL_POSTGRES_DSN for postgres.dsn), file, default. Nothing is opened.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	flags := app.AddStoreFlags(cmd)
	app.AddServeFlags(cmd, flags)
	sub := func(use, short, example string, run func(io.Writer, cli.Output, *config.Explained) error) {
		var output cli.Output
		c := &cobra.Command{
			Use: use, Short: short, Example: example, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				e, err := flags.Explain()
				if err != nil {
					return err
				}
				return run(cmd.OutOrStdout(), output, e)
			},
		}
		cli.OutputFlag(c, &output)
		cmd.AddCommand(c)
	}
	sub("print", "Print every key with its value and where that is from; secrets are redacted",
		"  likectl config print -c configs/tier1.yaml\n  LIKECTL_WRITE_LANES=4 likectl config print --output json", Print)
	sub("validate", "Name everything that is wrong at once; the exit code is 2 then",
		"  likectl config validate -c configs/tier1.yaml", Validate)
	return cmd
}

// Print lists the settings, also those of a configuration that is not valid.
func Print(w io.Writer, output cli.Output, e *config.Explained) error {
	if output == cli.JSON {
		return errors.Join(json.NewEncoder(w).Encode(e.Settings), refused(e))
	}
	rows := [][]string{{"KEY", "VALUE", "ORIGIN"}}
	for _, s := range e.Settings {
		value := s.Text()
		if value == "" {
			value = `""`
		}
		rows = append(rows, []string{s.Key, value, s.Origin})
	}
	return errors.Join(cli.PrintTable(w, rows), refused(e))
}

// verdict is the answer of validate in JSON.
type verdict struct {
	File     string           `json:"file"`
	Valid    bool             `json:"valid"`
	Problems []config.Problem `json:"problems"`
}

// Validate prints the problems, or that there are none.
func Validate(w io.Writer, output cli.Output, e *config.Explained) error {
	if output == cli.JSON {
		v := verdict{e.File, len(e.Problems) == 0, append([]config.Problem{}, e.Problems...)}
		return errors.Join(json.NewEncoder(w).Encode(v), refused(e))
	}
	if err := refused(e); err != nil {
		return err
	}
	what := "the configuration is valid"
	if e.File != "" {
		what = e.File + " is valid"
	}
	_, err := fmt.Fprintln(w, what)
	return err
}

// refused is the error of a configuration that is not valid, a line per problem.
func refused(e *config.Explained) error {
	err := e.Err()
	if errors.Is(err, likes.ErrInvalid) {
		return cli.WithCode(cli.Usage, err)
	}
	return err
}
