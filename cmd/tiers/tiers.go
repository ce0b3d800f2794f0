// Package tiers is the command `likectl tiers`.
package tiers

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"likectl/cmd/cli"
	"likectl/pkg/likes"
	"likectl/tiers"
)

// NewCmd returns the command.
func NewCmd() *cobra.Command {
	var output cli.Output
	cmd := &cobra.Command{
		Use:     "tiers",
		Short:   "What each tier promises, and what the loss of a backend costs",
		Example: "  likectl tiers\n  likectl tiers --output json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return Run(cmd.OutOrStdout(), output)
		},
	}
	cli.OutputFlag(cmd, &output)
	return cmd
}

// Run prints the contracts of all tiers that are built.
func Run(w io.Writer, output cli.Output) error {
	contracts := []likes.Contract{tiers.Contract(tiers.SQLite), tiers.Contract(tiers.Postgres)}
	if output == cli.JSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(describe(contracts))
	}
	table := [][]string{{"TIER", "ARCHITECTURE", "AN ANSWER MEANS", "COUNTS LAG", "EDGES LAG", "OWN WRITES", "COUNT = EDGES"}}
	for _, c := range describe(contracts) {
		table = append(table, []string{strconv.Itoa(c.Tier), c.Name, c.Ack, c.CountStaleness, c.EdgeStaleness, c.OwnWrites, c.CountEqualsEdges})
	}
	if err := cli.PrintTable(w, table); err != nil {
		return err
	}
	for _, c := range contracts {
		for _, l := range c.Losses {
			if _, err := fmt.Fprintf(w, "\n%s: %s\n  away: %s\n  lost: %s\n", c.Name, l.Backend, l.Away, l.Lost); err != nil {
				return err
			}
		}
	}
	return nil
}

// row is a contract as people and scripts read it.
type row struct {
	Tier             int    `json:"tier"`
	Name             string `json:"architecture"`
	Ack              string `json:"ack"`
	CountStaleness   string `json:"count_staleness"`
	EdgeStaleness    string `json:"edge_staleness"`
	OwnWrites        string `json:"own_writes"`
	CountEqualsEdges string `json:"count_equals_edges"`
	Losses           []loss `json:"losses"`
}

type loss struct {
	Backend string `json:"backend"`
	Away    string `json:"away"`
	Lost    string `json:"lost"`
}

func describe(contracts []likes.Contract) []row {
	rows := make([]row, len(contracts))
	for i, c := range contracts {
		rows[i] = row{
			Tier: c.Tier, Name: c.Name, Ack: c.Ack.String(),
			CountStaleness: c.CountStaleness.String(), EdgeStaleness: c.EdgeStaleness.String(),
			OwnWrites: "within the lag", CountEqualsEdges: "at rest",
		}
		for _, l := range c.Losses {
			rows[i].Losses = append(rows[i].Losses, loss(l))
		}
		switch {
		case c.CountStaleness == 0:
			rows[i].OwnWrites = "at once"
		case c.ReadYourWrites:
			rows[i].OwnWrites = "with a token"
		}
		if c.CountEqualsEdges {
			rows[i].CountEqualsEdges = "always"
		}
	}
	return rows
}
