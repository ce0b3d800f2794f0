// Package schema is the command `likectl schema`: the tables of one store. (What
// moves data between tiers is `likectl migrate`, a different thing.)
package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"likectl/cmd/app"
	"likectl/cmd/cli"
	"likectl/pkg/config"
	"likectl/pkg/datadir"
	"likectl/pkg/store"
	"likectl/pkg/store/postgres"
	"likectl/pkg/store/sqlite"
)

// NewCmd returns the command with its subcommands.
func NewCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Create or show the tables of the configured store",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	flags := app.AddStoreFlags(cmd)
	sub := func(use, short, example string, run func(context.Context, config.Config) ([]store.Migration, error), creates bool) {
		var output cli.Output
		c := &cobra.Command{
			Use: use, Short: short, Example: example, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				cfg, err := flags.Load()
				if err != nil {
					return err
				}
				if !creates || !cmd.Flags().Changed("data") {
					if err := app.RequireStore(cfg); err != nil {
						return err
					}
				}
				migrations, err := run(cmd.Context(), cfg)
				if err != nil && len(migrations) == 0 {
					return err
				}
				return errors.Join(err, Print(cmd.OutOrStdout(), output, migrations))
			},
		}
		cli.OutputFlag(c, &output)
		cmd.AddCommand(c)
	}
	sub("up", "Bring the tables up to date and list what was done; several processes may do it at once",
		"  likectl schema up -c configs/tier1.yaml\n  likectl schema up --data likectl-data", Up, true)
	sub("status", "List the migrations and when each was applied",
		"  likectl schema status -c configs/tier1.yaml --output json", Status, false)
	return cmd
}

// Up applies the pending migrations and returns them. Those returned with an
// error were applied before it happened.
func Up(ctx context.Context, cfg config.Config) ([]store.Migration, error) {
	if dsn := cfg.Postgres.DSN.Reveal(); dsn != "" {
		done, err := postgres.SchemaUp(ctx, dsn)
		return done, app.Unreached(cfg, err)
	}
	dir, err := datadir.Open(cfg.Data)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	return sqlite.SchemaUp(ctx, dir.Database())
}

// Status returns all migrations; pending ones have no time.
func Status(ctx context.Context, cfg config.Config) ([]store.Migration, error) {
	if dsn := cfg.Postgres.DSN.Reveal(); dsn != "" {
		all, err := postgres.SchemaStatus(ctx, dsn)
		return all, app.Unreached(cfg, err)
	}
	dir, err := datadir.Open(cfg.Data)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	return sqlite.SchemaStatus(ctx, dir.Database())
}

// Print lists migrations.
func Print(w io.Writer, output cli.Output, migrations []store.Migration) error {
	type row struct {
		Version   int64      `json:"version"`
		Name      string     `json:"name"`
		AppliedAt *time.Time `json:"applied_at"`
	}
	rows := make([]row, len(migrations))
	for i, m := range migrations {
		rows[i] = row{Version: m.Version, Name: m.Name}
		if !m.AppliedAt.IsZero() {
			rows[i].AppliedAt = &migrations[i].AppliedAt
		}
	}
	if output == cli.JSON {
		return json.NewEncoder(w).Encode(rows)
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, "nothing to do: the schema is up to date")
		return err
	}
	table := [][]string{{"VERSION", "MIGRATION", "APPLIED"}}
	for _, r := range rows {
		applied := "pending"
		if r.AppliedAt != nil {
			applied = r.AppliedAt.UTC().Format(time.RFC3339)
		}
		table = append(table, []string{strconv.FormatInt(r.Version, 10), r.Name, applied})
	}
	return cli.PrintTable(w, table)
}
