// Package man is the command `likectl man`, for those who make packages.
package man

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// NewCmd returns the command. It is hidden: users have --help.
func NewCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write a manual page per command into a folder",
		Example: "  likectl man /usr/local/share/man/man1",
		Hidden:  true,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			const mode = 0o755 // manual pages are for everybody
			if err := os.MkdirAll(args[0], mode); err != nil {
				return fmt.Errorf("no page was written: %w", err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // the same pages on every day
			header := &doc.GenManHeader{Title: "LIKECTL", Section: "1", Source: "likectl", Manual: "likectl manual"}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("write the pages: %w", err)
			}
			return nil
		},
	}
}
