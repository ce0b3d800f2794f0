package erase

import (
	"bytes"
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/cmd/app"
	"likectl/cmd/cli"
	"likectl/pkg/config"
	"likectl/pkg/likes"
	"likectl/tiers/tier1"
)

func execute(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	cmd := NewCmd()
	var stdout bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetOut(&stdout)
	cmd.SetErr(io.Discard)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), err
}

// stored returns a data folder in which users 5 and 6 like an item.
func stored(t *testing.T) string {
	t.Helper()
	cfg := config.Default()
	cfg.Data = t.TempDir()
	tier, err := app.OpenTier(t.Context(), cfg, app.Quiet(), tier1.Hooks{})
	require.NoError(t, err)
	for _, user := range []likes.UserID{5, 6} {
		edge := likes.Edge{Counter: likes.Likes, User: user, Item: likes.Item{Type: 1, ID: 1}}
		require.NoError(t, tier.Service.Apply(t.Context(), []likes.Mutation{{Op: likes.Set, Edge: edge}})[0].Err)
	}
	require.NoError(t, tier.Close(t.Context()))
	return cfg.Data
}

// Who mistypes an id, or takes another user's receipt, is not told to erase.
func TestVerify_SaysWhatToDoAboutWhatItFinds(t *testing.T) {
	t.Setenv("LIKECTL_POSTGRES_DSN", "")
	data := stored(t)
	receipt := filepath.Join(t.TempDir(), "5.json")

	_, err := execute(t, "verify", "--user", "5", "--data", data)
	require.Equal(t, cli.Difference, cli.CodeOf(err))
	require.ErrorContains(t, err, "user 5 is not erased")
	require.ErrorContains(t, err, "check the id")
	require.ErrorContains(t, err, "`likectl erase --user 5 --dry-run`")

	for user, args := range map[string][]string{"5": {"--receipt", receipt}, "6": nil} {
		_, err = execute(t, append(args, "--user", user, "--data", data)...)
		require.NoError(t, err)
	}
	out, err := execute(t, "verify", "--user", "5", "--receipt", receipt, "--data", data)
	require.NoError(t, err)
	require.Contains(t, out, "the receipt is good")

	_, err = execute(t, "verify", "--user", "6", "--receipt", receipt, "--data", data)
	require.Equal(t, cli.Difference, cli.CodeOf(err))
	require.ErrorContains(t, err, "user 6 is erased and no row is left, but the receipt is that of another user")
	require.ErrorContains(t, err, "`likectl erase --user 6 --receipt FILE`")
}
