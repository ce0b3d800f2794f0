package purge

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExamplesParse(t *testing.T) {
	t.Setenv("LIKECTL_POSTGRES_DSN", "")
	for line := range strings.Lines(NewCmd().Example) {
		_, command, _ := strings.Cut(line, "likectl purge ")
		cmd := newCmd(func(context.Context, streams, Options) error { return nil })
		cmd.SetArgs(strings.Fields(strings.Replace(command, "configs/", "../../configs/", 1)))
		require.NoError(t, cmd.Execute(), line)
	}
}
