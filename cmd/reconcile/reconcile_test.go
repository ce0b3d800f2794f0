package reconcile

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"likectl/cmd/app"
	"likectl/cmd/cli"
	"likectl/pkg/adminapi"
	"likectl/pkg/auth"
	"likectl/pkg/config"
	"likectl/pkg/likes"
	"likectl/pkg/reconcile"
	"likectl/pkg/store"
	"likectl/tiers/tier1"
)

func execute(t *testing.T, args ...string) (out string, code int, err error) {
	t.Helper()
	cmd := NewCmd()
	var stdout bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetOut(&stdout)
	cmd.SetErr(io.Discard)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), cli.CodeOf(err), err
}

func open1(t *testing.T, data string) *app.Tier {
	t.Helper()
	cfg := config.Default()
	cfg.Data = data
	tier, err := app.OpenTier(t.Context(), cfg, app.Quiet(), tier1.Hooks{})
	require.NoError(t, err)
	return tier
}

// broken returns a data folder with 5 posts of 2 likes each, two of whose
// counters are wrong.
func broken(t *testing.T) string {
	t.Helper()
	data := t.TempDir()
	tier := open1(t, data)
	for id := range likes.ItemID(5) {
		for user := range likes.UserID(2) {
			m := likes.Mutation{Op: likes.Set, Edge: likes.Edge{Counter: likes.Likes, User: user + 1, Item: likes.Item{Type: 1, ID: id + 1}}}
			require.NoError(t, tier.Service.Apply(t.Context(), []likes.Mutation{m})[0].Err)
		}
	}
	require.NoError(t, tier.Close(t.Context()))
	damage(t, data, "update counters set count = 9 where item_id = 2", "delete from counters where item_id = 4")
	return data
}

// damage changes tables behind likectl's back.
func damage(t *testing.T, data string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(data, "likes.db")+"?_pragma=busy_timeout(10000)")
	require.NoError(t, err)
	for _, statement := range statements {
		_, err = db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())
}

func TestTheLargestAreListedAgain(t *testing.T) {
	var out bytes.Buffer
	p := &printer{w: &out, output: cli.Table, dryRun: true, types: likes.DefaultItemTypes()}
	for n := range int64(30) {
		f := reconcile.Found{Drift: store.Drift{Key: store.Key{Counter: likes.Likes, Item: likes.Item{Type: 1, ID: likes.ItemID(n + 1)}}, Edges: 100}}
		f.Stored = f.Edges + (n*7)%30*(1-2*(n%2)) // sizes 0 to 29, of both signs
		require.NoError(t, p.found(f))
	}
	require.NoError(t, p.summary(reconcile.Summary{Checked: 30, Drifted: 30, Magnitude: 435}, time.Second, true))
	_, list, found := strings.Cut(out.String(), "the largest of them:\n")
	require.True(t, found)
	var sizes []string
	for line := range strings.Lines(list) {
		if f := strings.Fields(line); len(f) == 7 {
			sizes = append(sizes, strings.TrimLeft(f[4], "+-"))
		}
	}
	require.Equal(t, strings.Fields("29 28 27 26 25 24 23 22 21 20"), sizes)
}

// Nothing is said of counters that nobody looked at, and nothing of repairs where
// none was asked for.
func TestAWalkThatBrokeOffAtOnceSaysSo(t *testing.T) {
	var out bytes.Buffer
	p := &printer{w: &out, output: cli.Table, dryRun: true, types: likes.DefaultItemTypes()}
	require.NoError(t, p.summary(reconcile.Summary{}, time.Second, false))
	require.Equal(t, "no counter was compared in 1.000 s\n", out.String())

	err := verdict(Options{DryRun: true}, reconcile.Summary{Checked: 3}, likes.ErrUnavailable)
	require.ErrorIs(t, err, likes.ErrUnavailable)
	require.ErrorContains(t, err, "stopped after 3 counters; nothing was changed (dry run), run it again for the rest")
	require.ErrorContains(t, verdict(Options{}, reconcile.Summary{}, likes.ErrUnavailable), "what was repaired stays repaired")
}

func TestDryRunThenOneItemThenAll(t *testing.T) {
	data := broken(t)
	out, code, err := execute(t, "--dry-run", "--data", data)
	require.Equal(t, cli.Difference, code)
	require.ErrorContains(t, err, "2 of 5 counters differ from their likes; nothing was changed, repair them with --all")
	require.Regexp(t, `likes +post:2 +9 +2 +-7  excess +differs\n`, out)
	require.Regexp(t, `likes +post:4 +none +2 +\+2  missing +differs\n`, out)
	require.Contains(t, out, "2 differ by 9 in sum; nothing was changed (dry run)")

	out, code, err = execute(t, "--item", "post:4", "--item", "post:1", "--data", data)
	require.NoError(t, err)
	require.Zero(t, code)
	require.Regexp(t, `post:4 .* repaired`, out)
	require.Contains(t, out, "2 counters compared")

	out, _, err = execute(t, "--all", "--data", data, "--output", "json")
	require.NoError(t, err)
	var got struct {
		Drifts, Largest  []driftLine
		Checked          int
		Repaired         int
		DryRun, Complete bool
		Target           string
	}
	require.NoError(t, json.Unmarshal([]byte(out), &got), out)
	require.Equal(t, []driftLine{{"likes", "post", "2", 9, 2, -7, false, true, "excess", time.Time{}}}, got.Drifts)
	require.Equal(t, got.Drifts, got.Largest)
	require.Equal(t, 5, got.Checked)
	require.Equal(t, 1, got.Repaired)
	require.True(t, got.Complete)
	require.Equal(t, "embedded SQLite in "+data, got.Target)

	out, code, err = execute(t, "--dry-run", "--data", data)
	require.NoError(t, err)
	require.Zero(t, code)
	require.Contains(t, out, "5 counters compared")
	require.Contains(t, out, "all equal their likes")
}

func TestThroughARunningServer(t *testing.T) {
	data := broken(t)
	tier := open1(t, data)
	tokens, err := auth.New(auth.Default(tier.Secret))
	require.NoError(t, err)
	server := httptest.NewServer(adminapi.New(adminapi.Config{
		Service: tier.Service, Auditor: tier.Auditor, Types: map[string]int{"post": 1},
		Authorize: adminapi.AdminOnly(tokens), Log: slog.New(slog.DiscardHandler),
	}))
	_, code, err := execute(t, "--all", "--data", data)
	require.ErrorContains(t, err, "--admin")
	require.Equal(t, cli.Failure, code)

	_, code, _ = execute(t, "--dry-run", "--data", data, "--admin", server.URL)
	require.Equal(t, cli.Difference, code)
	out, _, err := execute(t, "--all", "--data", data, "--admin", server.URL, "--output", "json")
	require.NoError(t, err)
	require.Contains(t, out, `"repaired":2`)
	require.Contains(t, out, `"complete":true`)
	require.NotContains(t, out, `"right_at"`)

	damage(t, data, "update counters set count = count - 5 * item_id where item_id > 1")
	out, _, _ = execute(t, "--dry-run", "--data", data, "--admin", server.URL)
	require.Regexp(t, `post:5 .* deficit +differs`, out)
	require.Contains(t, out, "none is older than the complete walk of 20")
	require.NotContains(t, out, "the largest of them")
	out, _, err = execute(t, "--all", "--data", data, "--admin", server.URL, "--output", "json")
	require.NoError(t, err)
	var got struct{ Drifts, Largest []driftLine }
	require.NoError(t, json.Unmarshal([]byte(out), &got), out)
	require.Len(t, got.Drifts, 4)
	require.Equal(t, []string{"5", "4", "3", "2"}, []string{got.Largest[0].ItemID, got.Largest[1].ItemID, got.Largest[2].ItemID, got.Largest[3].ItemID})
	require.WithinDuration(t, time.Now(), got.Drifts[0].RightAt, time.Minute)
	server.Close()
	require.NoError(t, tier.Close(t.Context()))
}

func TestWithoutAStoreNothingIsCompared(t *testing.T) {
	data := filepath.Join(t.TempDir(), "typo")
	_, code, err := execute(t, "--dry-run", "--data", data)
	require.ErrorContains(t, err, "there are no likes in the data folder "+data)
	require.Equal(t, cli.Failure, code)
	require.NoDirExists(t, data)

	data = t.TempDir()
	require.NoError(t, open1(t, data).Close(t.Context()))
	out, code, err := execute(t, "--dry-run", "--data", data)
	require.NoError(t, err)
	require.Zero(t, code)
	require.Contains(t, out, "counters in embedded SQLite in "+data)
	require.Contains(t, out, "nothing to compare: there are neither")
	out, _, err = execute(t, "--item", "post:999", "--data", data)
	require.NoError(t, err)
	require.Contains(t, out, "nothing to compare: post:999 has neither a counter nor likes")
	out, _, err = execute(t, "--item", "post:1", "--item", "post:999", "--data", broken(t))
	require.NoError(t, err)
	require.Contains(t, out, "1 counter compared")
	require.Contains(t, out, "1 item without counter and likes")
}

func TestUsageErrors(t *testing.T) {
	data := t.TempDir()
	require.NoError(t, open1(t, data).Close(t.Context()))
	for _, c := range []struct {
		want string
		args []string
	}{
		{"say what to do: --dry-run lists", nil},
		{"--all and --item exclude each other", []string{"--all", "--item", "post:1"}},
		{"--counter goes with --item", []string{"--all", "--counter", "saves"}},
		{"--counter: views is not a set counter but a tally", []string{"--item", "post:1", "--counter", "views"}},
		{"--counter: counter \"stars\" is unknown", []string{"--item", "post:1", "--counter", "stars"}},
		{"--max-rate is 0", []string{"--all", "--max-rate", "0"}},
		{"--max-rate is -1", []string{"--all", "--max-rate", "-1"}},
		{`"video" is not a configured item type; want TYPE:ID, such as post:42`, []string{"--item", "video:1", "--data", data}},
		{`"01" is not an id`, []string{"--item", "post:01", "--data", data}},
		{`want TYPE:ID, such as post:42`, []string{"--item", "1", "--data", data}},
		{"--admin and --dsn exclude each other", []string{"--all", "--admin", "http://127.0.0.1:1", "--dsn", "x"}},
		{"--admin:", []string{"--all", "--admin", "nowhere", "--data", data}},
	} {
		t.Run(c.want, func(t *testing.T) {
			_, code, err := execute(t, c.args...)
			require.ErrorContains(t, err, c.want)
			require.Equal(t, cli.Usage, code)
		})
	}
}

func TestExamplesParse(t *testing.T) {
	t.Setenv("LIKECTL_POSTGRES_DSN", "")
	for line := range strings.Lines(NewCmd().Example) {
		_, command, _ := strings.Cut(line, "likectl reconcile ")
		cmd := newCmd(func(context.Context, io.Writer, io.Writer, Options) error { return nil })
		cmd.SetArgs(strings.Fields(strings.Replace(command, "configs/", "../../configs/", 1)))
		require.NoError(t, cmd.Execute(), line)
	}
}
