package export

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"likectl/cmd/app"
	"likectl/cmd/cli"
	"likectl/cmd/imports"
	"likectl/pkg/config"
	"likectl/pkg/datadir"
	"likectl/pkg/likes"
	"likectl/pkg/store/postgres"
	containers "likectl/testcontainers"
	"likectl/tiers/tier1"
)

func TestMain(m *testing.M) { containers.Main(m) }

// execute runs a command and returns what it printed and its exit code.
func execute(ctx context.Context, cmd *cobra.Command, args ...string) (out, errOut string, code int, err error) {
	var stdout, stderr bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(ctx)
	return stdout.String(), stderr.String(), cli.CodeOf(err), err
}

const likesFile = `user_id,item_type,item_id,action,liked_at,counter
1,post,1,like,2024-05-06T07:08:09.123456Z,likes
2,post,1,like,2011-02-03T04:05:06Z,likes
2,post,1,like,,saves
3,post,1,like,2024-05-06T07:08:10Z,likes
3,post,1,unlike,2024-05-06T07:08:11Z,likes
3,reel,9223372036854775807,like,2024-05-06T07:08:12Z,likes
`

func importInto(t *testing.T, path string, store ...string) {
	t.Helper()
	_, _, code, err := execute(t.Context(), imports.NewCmd(), append([]string{path}, store...)...)
	require.NoError(t, err)
	require.Zero(t, code)
}

// TestRoundTripBetweenPostgresAndSQLite exports from a Postgres, imports into an
// empty data folder and exports again: the files are equal, to the byte.
func TestRoundTripBetweenPostgresAndSQLite(t *testing.T) {
	server := containers.SharedPostgres(t)
	dsn := server.MigratedDatabase(t, "likectl_schema", func(ctx context.Context, dsn string) error {
		_, err := postgres.SchemaUp(ctx, dsn)
		return err
	})
	dir := t.TempDir()
	in, first, second := filepath.Join(dir, "in.csv"), filepath.Join(dir, "first.jsonl.gz"), filepath.Join(dir, "second.jsonl.gz")
	require.NoError(t, os.WriteFile(in, []byte(likesFile), 0o600))
	remote := []string{"--dsn", dsn, "--data", filepath.Join(dir, "remote")}
	embedded := []string{"--data", filepath.Join(dir, "embedded")}
	importInto(t, in, remote...)

	out, errOut, _, err := execute(t.Context(), NewCmd(), append(remote, "-o", first)...)
	require.NoError(t, err)
	require.Empty(t, out)
	require.Contains(t, errOut, "exported 3 likes and 1 saves to "+first)
	importInto(t, first, append(embedded, "--create")...)
	_, _, _, err = execute(t.Context(), NewCmd(), append(embedded, "-o", second)...)
	require.NoError(t, err)
	a, err := os.ReadFile(first)
	require.NoError(t, err)
	b, err := os.ReadFile(second)
	require.NoError(t, err)
	require.Equal(t, a, b)
	require.Equal(t, []byte{0x1f, 0x8b}, a[:2], "gzipped")

	text, _, _, err := execute(t.Context(), NewCmd(), append(embedded, "--format", "csv")...)
	require.NoError(t, err)
	require.Regexp(t, `(?s)^user_id,item_type,item_id,liked_at,counter
1,post,1,2024-05-06T07:08:09.123456Z,likes
2,post,1,2011-02-03T04:05:06Z,likes
3,reel,9223372036854775807,2024-05-06T07:08:12Z,likes
2,post,1,2020-01-01T00:00:00.00000[0-9]Z,saves
$`, text)

	// A user's own copy is JSON, saves included; the server's answer is that of a
	// plain connection.
	text, _, _, err = execute(t.Context(), NewCmd(), append(remote, "--user", "2", "--format", "jsonl")...)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(text, "\n"))
	for line := range strings.Lines(text) {
		var l map[string]string
		require.NoError(t, json.Unmarshal([]byte(line), &l))
		require.Equal(t, "2", l["user_id"])
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	var n int
	require.NoError(t, conn.QueryRow(t.Context(), "select count(*) from edges where liked and user_id = 2").Scan(&n))
	require.Equal(t, 2, n)
}

func TestInterruptedLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	cfg := config.Default()
	cfg.Data = filepath.Join(dir, "data")
	tier, err := app.OpenTier(t.Context(), cfg, app.Quiet(), tier1.Hooks{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for path, want := range map[string]string{filepath.Join(dir, "x.csv"): "no file was written", "-": "up to 0 lines"} {
		o := Options{Path: path, Format: "csv"}
		sum, err := exportTo(ctx, io.Discard, io.Discard, o, &source{likes.DefaultItemTypes(), tier.Walker, nil})
		err = explain(ctx, o, sum, err)
		require.ErrorContains(t, err, want)
		require.Equal(t, cli.Interrupted, cli.CodeOf(err))
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "the data folder")
	require.NoError(t, tier.Close(t.Context()))
}

// withSecret returns a data folder of a server.
func withSecret(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	_, err := datadir.Secret(dir)
	require.NoError(t, err)
	return dir
}

func TestUsageErrors(t *testing.T) {
	for _, c := range []struct {
		want string
		args []string
	}{
		{`--format: format "xml" is unknown`, []string{"--format", "xml"}},
		{"leave out .gz", []string{"-o", "likes.parquet.gz"}},
		{`--counter: views is not a set counter`, []string{"--counter", "views"}},
		{`--user: "01" is not an id`, []string{"--user", "01"}},
		{`--user: "" is not an id`, []string{"--user", ""}},
		{"--out is empty", []string{"-o", ""}},
		{"--admin:", []string{"--admin", "nowhere", "--data", withSecret(t)}},
	} {
		t.Run(c.want, func(t *testing.T) {
			_, _, code, err := execute(t.Context(), NewCmd(), c.args...)
			require.ErrorContains(t, err, c.want)
			require.Equal(t, cli.Usage, code)
		})
	}
}

func TestFormatFollowsTheName(t *testing.T) {
	for path, want := range map[string]string{
		"-": "csv", "a": "csv", "a.csv.gz": "csv", "a.jsonl": "jsonl", "a.jsonl.gz": "jsonl", "a.ndjson": "jsonl",
		"a.parquet": "parquet", "parquet": "csv",
	} {
		got, err := formatOf("", path, io.Discard)
		require.NoError(t, err)
		require.EqualValues(t, want, got, path)
	}
}

func TestExamplesParse(t *testing.T) {
	t.Setenv("LIKECTL_POSTGRES_DSN", "")
	for line := range strings.Lines(NewCmd().Example) {
		_, command, _ := strings.Cut(line, "likectl export ")
		cmd := newCmd(func(context.Context, io.Writer, io.Writer, Options) error { return nil })
		cmd.SetArgs(strings.Fields(strings.Replace(command, "configs/", "../../configs/", 1)))
		require.NoError(t, cmd.Execute(), line)
	}
}

// TestPseudonymsRotate exports before and after the salt has reached its age.
func TestPseudonymsRotate(t *testing.T) {
	dir := t.TempDir()
	in, saltFile := filepath.Join(dir, "in.csv"), filepath.Join(dir, "salt")
	require.NoError(t, os.WriteFile(in, []byte(likesFile), 0o600))
	store := []string{"--data", filepath.Join(dir, "data")}
	importInto(t, in, append(store, "--create")...)
	names := func() map[string]bool {
		text, _, _, err := execute(t.Context(), NewCmd(), append(store, "--pseudonymise", "--salt-file", saltFile, "--rotate-after", "7d")...)
		require.NoError(t, err)
		all := map[string]bool{}
		for line := range strings.Lines(text) {
			name, _, _ := strings.Cut(line, ",")
			all[name] = true
		}
		delete(all, "pseudonym")
		require.Len(t, all, 3)
		return all
	}
	first := names()
	require.Equal(t, first, names())

	b, err := os.ReadFile(saltFile)
	require.NoError(t, err)
	var file map[string]string
	require.NoError(t, json.Unmarshal(b, &file))
	old := file["salt"]
	file["made_at"] = time.Now().Add(-8 * 24 * time.Hour).Format(time.RFC3339)
	b, err = json.Marshal(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(saltFile, b, 0o600))
	for name := range names() {
		require.False(t, first[name])
	}
	b, err = os.ReadFile(saltFile)
	require.NoError(t, err)
	require.NotContains(t, string(b), old, "the old salt is gone")
	require.NoError(t, os.Chmod(saltFile, 0o644))
	_, _, code, err := execute(t.Context(), NewCmd(), append(store, "--pseudonymise", "--salt-file", saltFile)...)
	require.ErrorContains(t, err, "0644")
	require.Equal(t, cli.Failure, code)
}

func TestDays(t *testing.T) {
	var d days
	for text, want := range map[string]time.Duration{"30d": 720 * time.Hour, "12h": 12 * time.Hour, "0d": 0, "36h30m": 36*time.Hour + 30*time.Minute} {
		require.NoError(t, d.Set(text))
		require.Equal(t, days(want), d)
		again := d
		require.NoError(t, d.Set(d.String()))
		require.Equal(t, again, d)
	}
	for _, text := range []string{"", "d", "-1d", "1.5d", "x", "30", "999999999d"} {
		require.Error(t, d.Set(text), text)
	}
}
