package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"likectl/cmd/app"
	"likectl/cmd/imports"
	"likectl/pkg/config"
	"likectl/pkg/likes"
	"likectl/pkg/store/postgres"
	containers "likectl/testcontainers"
	"likectl/tiers/tier1"
)

func TestTheRuleOnAHandCountedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "likes.csv")
	require.NoError(t, os.WriteFile(path, []byte(`liked_at,user_id,item_type,item_id,action,counter
2024-01-01T00:00:00Z,1,post,1,like,
2023-01-01T00:00:00Z,1,post,1,unlike,
,2,post,1,unlike,
,2,post,1,,
2024-01-01T00:00:00Z,3,post,1,unlike,
1704067200,3,post,1,like,
2012-01-01T00:00:00Z,4,post,1,like,
,4,post,1,unlike,
2024-01-01T00:00:00Z,1,post,10,unlike,
2024-01-01T00:00:00Z,1,post,9,like,saves
2024-01-01T00:00:00Z,1,comment,2,like,likes
`), 0o600))
	var out bytes.Buffer
	require.NoError(t, run(path, &out))
	require.Equal(t, "item_type,item_id,likes\ncomment,2,1\npost,1,3\npost,10,0\n", out.String())
}

func TestMain(m *testing.M) {
	containers.Main(m,
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// TestImportEqualsRecount imports a million generated events twice, by the
// command, into both engines of tier 1, and compares the count of every item with
// this program's. -short takes fewer, LIKECTL_TEST_EVENTS any number.
func TestImportEqualsRecount(t *testing.T) {
	events := "1000000"
	if testing.Short() {
		events = "30000"
	}
	if n := os.Getenv("LIKECTL_TEST_EVENTS"); n != "" {
		events = n
	}
	t.Run("csv into SQLite", func(t *testing.T) { importTwice(t, events, "csv") })
	t.Run("jsonl into SQLite", func(t *testing.T) { importTwice(t, events, "jsonl") })
	t.Run("csv into Postgres", func(t *testing.T) {
		dsn := containers.SharedPostgres(t).Database(t)
		t.Setenv("LIKECTL_POSTGRES_DSN", dsn)
		_, err := postgres.SchemaUp(t.Context(), dsn)
		require.NoError(t, err)
		importTwice(t, events, "csv")
	})
}

func importTwice(t *testing.T, events, format string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "events."+format)
	generate(t, path, "-n", events, "-seed", "7", "-jsonl="+strconv.FormatBool(format == "jsonl"))
	data := t.TempDir()
	first := importFile(t, data, path)
	require.Equal(t, events, strconv.Itoa(first["lines"]))
	require.Zero(t, first["skipped"])
	require.Positive(t, first["changed"])
	compare(t, data, path)
	second := importFile(t, data, path)
	require.Equal(t, second["lines"], second["superseded"], "the second import changes nothing")
	compare(t, data, path)
}

func generate(t *testing.T, path string, args ...string) {
	t.Helper()
	f, err := os.Create(path)
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"run", "likectl/benchmarks/gendata"}, args...)...)
	cmd.Stdout, cmd.Stderr = f, os.Stderr
	require.NoError(t, cmd.Run())
	require.NoError(t, f.Close())
}

// importFile runs the command and returns the numbers that it prints.
func importFile(t *testing.T, data, path string) map[string]int {
	t.Helper()
	cmd := imports.NewCmd()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs([]string{path, "--data", data, "--create", "--output", "json"})
	require.NoError(t, cmd.ExecuteContext(t.Context()))
	t.Log(out.String())
	var all map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &all))
	numbers := make(map[string]int)
	for name, v := range all {
		if n, ok := v.(float64); ok {
			numbers[name] = int(n)
		}
	}
	return numbers
}

// compare reads every count that the recount names from the service.
func compare(t *testing.T, data, path string) {
	t.Helper()
	var recounted bytes.Buffer
	require.NoError(t, run(path, &recounted))
	rows, err := csv.NewReader(&recounted).ReadAll()
	require.NoError(t, err)
	cfg, err := config.Load("", map[string]any{"data": data})
	require.NoError(t, err)
	types, err := cfg.ItemTypes()
	require.NoError(t, err)
	tier, err := app.OpenTier(t.Context(), cfg, app.Quiet(), tier1.Hooks{})
	require.NoError(t, err)
	defer func() { require.NoError(t, tier.Close(context.Background())) }()
	var items []likes.Item
	var want, got []int64
	for _, row := range rows[1:] {
		kind, ok := types.Type(row[0])
		require.True(t, ok)
		id, err := likes.ParseID(row[1])
		require.NoError(t, err)
		n, err := strconv.ParseInt(row[2], 10, 64)
		require.NoError(t, err)
		items, want = append(items, likes.Item{Type: kind, ID: likes.ItemID(id)}), append(want, n)
	}
	for from := 0; from < len(items); from += likes.MaxRead {
		for _, c := range tier.Service.Counts(t.Context(), likes.Likes, items[from:min(len(items), from+likes.MaxRead)], nil) {
			require.NoError(t, c.Err)
			got = append(got, c.N)
		}
	}
	require.Equal(t, want, got)
	t.Logf("%d items equal", len(items))
}
