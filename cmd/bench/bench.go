// Package bench is the command `likectl bench`.
package bench

import (
	"github.com/spf13/cobra"
)

// NewCmd returns the command.
func NewCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure what a running server carries",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRunCmd(Run), newCapacityCmd(RunCapacity), newReportCmd(), newCompareCmd())
	return cmd
}
