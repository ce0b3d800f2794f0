package erase

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExamplesParse(t *testing.T) {
	t.Setenv("LIKECTL_POSTGRES_DSN", "")
	nothing := func(context.Context, io.Writer, io.Writer, Options) error { return nil }
	erase, merge := NewCmd(), NewMergeCmd()
	text := erase.Example + "\n" + merge.Example
	for _, sub := range erase.Commands() {
		text += "\n" + sub.Example
	}
	for line := range strings.Lines(text) {
		_, command, _ := strings.Cut(line, "likectl ")
		cmd := newCmd(nothing, nothing, nothing, nothing)
		args := strings.Fields(strings.Replace(command, "configs/", "../../configs/", 1))
		if args[0] == "merge-users" {
			cmd = newMergeCmd(nothing)
		}
		cmd.SetArgs(args[1:])
		require.NoError(t, cmd.Execute(), line)
	}
}
