package tier1_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	containers "likectl/testcontainers"
	"likectl/tiers/tiertest"
)

// TestInstancesThatDoNotFitAreRefused starts instances that would do harm beside
// the one that runs: on a schema that is not there, with another secret, with
// another number for an item type.
func TestInstancesThatDoNotFitAreRefused(t *testing.T) {
	bin, dsn := tiertest.Build(t), containers.SharedPostgres(t).Database(t)
	env := []string{"LIKECTL_POSTGRES_DSN=" + dsn}
	file := filepath.Join(t.TempDir(), "my.yaml")
	require.NoError(t, os.WriteFile(file, []byte("items: {types: {post: 5}}\n"), 0o600))
	refused := func(data string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), bin, append([]string{
			"serve", "--tier", "1", "--data", data, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
		}, args...)...)
		cmd.Env = append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		require.Error(t, err, "%s", out)
		return string(out)
	}
	mine, others := t.TempDir(), t.TempDir()
	require.Contains(t, refused(mine), "create it with `likectl schema up`")
	require.Contains(t, refused(mine, "-c", file), "create it with `likectl schema up -c "+file+"`")
	tiertest.Likectl(t, bin, env, "schema", "up")

	tiertest.StartServer(t, bin, env, "--tier", "1", "--data", mine)
	require.Contains(t, refused(mine, "-c", file), "the item type post is 5 in the configuration and 1 in the store")
	text := refused(others)
	require.Contains(t, text, "made a new secret")
	require.Contains(t, text, "the instances on this database have another secret")
	require.Contains(t, text, "--adopt-secret")

	tiertest.StartServer(t, bin, env, "--tier", "1", "--data", others, "--adopt-secret")
	require.Contains(t, refused(mine), "another secret")
	elsewhere := t.TempDir()
	t.Chdir(elsewhere)
	require.Contains(t, tiertest.Likectl(t, bin, env, "reconcile", "--dry-run"), "nothing to compare")
	require.NoDirExists(t, filepath.Join(elsewhere, "likectl-data"), "a command that signs nothing makes no secret")
}
