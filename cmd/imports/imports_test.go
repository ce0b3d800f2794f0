package imports

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/cmd/app"
	"likectl/cmd/cli"
	"likectl/pkg/adminapi"
	"likectl/pkg/auth"
	"likectl/pkg/config"
	"likectl/pkg/datadir"
	"likectl/pkg/likes"
	"likectl/pkg/memory"
	"likectl/tiers/tier1"
)

// execute runs the command and returns what it printed and its exit code.
func execute(ctx context.Context, stdin io.Reader, args ...string) (out, errOut string, code int, err error) {
	cmd := NewCmd()
	var stdout, stderr bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetIn(stdin)
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(ctx)
	return stdout.String(), stderr.String(), cli.CodeOf(err), err
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// file has 900 likes by 900 users of 9 items, and 100 unlikes.
func file() string {
	var b strings.Builder
	b.WriteString("user_id,item_type,item_id,action\n")
	for n := range 900 {
		fmt.Fprintf(&b, "%d,post,%d,like\n", n+1, n%9+1)
	}
	for n := range 100 {
		fmt.Fprintf(&b, "%d,post,%d,unlike\n", n+1, n%9+1)
	}
	return b.String()
}

func decode(t *testing.T, out string) report {
	t.Helper()
	var r report
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&r), out)
	return r
}

// tier opens the embedded store in a folder, as another process would after the
// command.
func tier(t *testing.T, data string) *app.Tier {
	t.Helper()
	cfg := config.Default()
	cfg.Data = data
	tier, err := app.OpenTier(t.Context(), cfg, app.Quiet(), tier1.Hooks{})
	require.NoError(t, err)
	return tier
}

func total(t *testing.T, s likes.Service) (n int64) {
	t.Helper()
	items := make([]likes.Item, 9)
	for i := range items {
		items[i] = likes.Item{Type: 1, ID: likes.ItemID(i + 1)}
	}
	for _, c := range s.Counts(t.Context(), likes.Likes, items, nil) {
		require.NoError(t, c.Err)
		n += c.N
	}
	return n
}

func TestImportTwiceIntoADataFolder(t *testing.T) {
	data, path := t.TempDir(), write(t, "likes.csv", file())
	_, _, code, err := execute(t.Context(), nil, path, "--data", data)
	require.ErrorContains(t, err, "there are no likes in the data folder "+data)
	require.Equal(t, cli.Failure, code)
	out, errOut, code, err := execute(t.Context(), nil, path, "--data", data, "--create", "--output", "json")
	require.NoError(t, err)
	require.Zero(t, code)
	require.Empty(t, errOut, "a short import needs no progress")
	r := decode(t, out)
	require.EqualValues(t, 1000, r.Lines)
	require.EqualValues(t, 1000, r.Changed+r.Unchanged+r.Superseded)
	require.GreaterOrEqual(t, r.Changed, int64(800), "an unlike may be in one transaction with its like")
	require.EqualValues(t, 1001, r.Through)
	out, _, _, err = execute(t.Context(), nil, path, "--data", data, "--output", "json")
	require.NoError(t, err)
	r = decode(t, out)
	require.EqualValues(t, 1000, r.Superseded)
	require.Zero(t, r.Changed)

	tr := tier(t, data)
	require.EqualValues(t, 800, total(t, tr.Service))
	require.NoError(t, tr.Close(t.Context()))
}

func TestImportThroughARunningServer(t *testing.T) {
	data := t.TempDir()
	tr := tier(t, data)
	tokens, err := auth.New(auth.Default(tr.Secret))
	require.NoError(t, err)
	server := httptest.NewServer(adminapi.New(adminapi.Config{
		Service: tr.Service, Auditor: tr.Auditor, Types: map[string]int{"post": 1},
		Authorize: adminapi.AdminOnly(tokens), Log: slog.New(slog.DiscardHandler),
	}))
	path := write(t, "likes.csv", file())

	_, _, code, err := execute(t.Context(), nil, path, "--data", data)
	require.ErrorContains(t, err, "--admin", "the folder is locked, and the message says what to do")
	require.Equal(t, cli.Failure, code)

	out, _, _, err := execute(t.Context(), nil, path, "--data", data, "--admin", server.URL)
	require.NoError(t, err)
	require.Contains(t, out, "the server at "+server.URL)
	require.EqualValues(t, 800, total(t, tr.Service))

	_, _, code, err = execute(t.Context(), nil, path, "--data", t.TempDir(), "--admin", server.URL)
	require.ErrorContains(t, err, "no secret in ")
	require.Equal(t, cli.Failure, code)

	other := t.TempDir()
	_, err = datadir.Secret(other)
	require.NoError(t, err)
	_, _, code, err = execute(t.Context(), nil, path, "--data", other, "--admin", server.URL)
	require.ErrorContains(t, err, "name the server's with --data")
	require.Equal(t, cli.Failure, code)

	_, _, code, err = execute(t.Context(), nil, path, "--data", data, "--admin", "localhost")
	require.Equal(t, cli.Usage, code, "%v", err)

	server.Close()
	_, _, code, err = execute(t.Context(), nil, path, "--data", data, "--admin", server.URL)
	require.ErrorContains(t, err, "nothing was imported")
	require.Equal(t, cli.Failure, code)
	require.NoError(t, tr.Close(t.Context()))
}

func TestStandardInputMayBeGzipped(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err := io.WriteString(z, `{"user_id":"1","item_type":"post","item_id":"1"}`)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	out, _, _, err := execute(t.Context(), &zipped, "-", "--data", t.TempDir(), "--create", "--format", "jsonl")
	require.NoError(t, err)
	require.Regexp(t, `changed +1`, out)
	require.Contains(t, out, "standard input")
}

func TestBadLines(t *testing.T) {
	data := t.TempDir()
	path := write(t, "likes.csv", "user_id,item_type,item_id\n1,post,1\n01,post,1\n2,post,1\n")

	out, _, code, err := execute(t.Context(), nil, path, "--data", data, "--dry-run")
	require.Equal(t, cli.Usage, code)
	require.ErrorContains(t, err, `likes.csv: line 3: user_id "01" is not an id`)
	require.ErrorContains(t, err, "1 like before it can be imported")
	require.Contains(t, out, "dry run")
	require.NoFileExists(t, filepath.Join(data, "likes.db"), "a dry run opens no store")

	out, _, code, err = execute(t.Context(), nil, path, "--data", data, "--create", "--output", "json")
	require.Equal(t, cli.Usage, code)
	require.ErrorContains(t, err, "1 like before it had been imported, nothing from it on")
	require.EqualValues(t, 1, decode(t, out).Changed)

	out, _, code, err = execute(t.Context(), nil, path, "--data", data, "--on-error", "skip")
	require.NoError(t, err)
	require.Zero(t, code)
	require.Regexp(t, `skipped +1`, out)
	require.Contains(t, out, `  line 3: user_id "01" is not an id`)

	tr := tier(t, data)
	require.EqualValues(t, 2, total(t, tr.Service))
	require.NoError(t, tr.Close(t.Context()))
}

func TestUsageErrors(t *testing.T) {
	good := write(t, "likes.csv", file())
	for _, c := range []struct {
		want string
		args []string
	}{
		{"accepts 1 arg", nil},
		{"--batch is 0", []string{good, "--batch", "0"}},
		{"--batch is -1", []string{good, "--batch", "-1"}},
		{"--batch is 1001", []string{good, "--batch", "1001"}},
		{`--on-error is "maybe"`, []string{good, "--on-error", "maybe"}},
		{`--format: format "xml" is unknown`, []string{good, "--format", "xml"}},
		{"nothing was imported: open", []string{filepath.Join(t.TempDir(), "missing.csv")}},
		{"is a folder", []string{t.TempDir()}},
		{"want table or json", []string{good, "--output", "xml"}},
		{"line 1: the header has a column \"a\"", []string{write(t, "x.csv", "a,b\n1,2\n"), "--data", t.TempDir(), "--create"}},
		{"the input is empty", []string{write(t, "x.csv", ""), "--data", t.TempDir(), "--create"}},
	} {
		t.Run(c.want, func(t *testing.T) {
			_, _, code, err := execute(t.Context(), nil, c.args...)
			require.ErrorContains(t, err, c.want)
			if !strings.HasPrefix(c.want, "accepts") && !strings.HasPrefix(c.want, "want") { // the root command's part
				require.Equal(t, cli.Usage, code)
			}
		})
	}
}

// TestWhatFailsBeforeAnythingWasApplied prints no table of zeros and names the
// item as the file does.
func TestWhatFailsBeforeAnythingWasApplied(t *testing.T) {
	types, err := likes.NewItemTypes(map[string]likes.ItemType{"product": 1})
	require.NoError(t, err)
	for _, c := range []struct {
		kind error
		says string
	}{
		{likes.ErrInvalid, "likes of product:4250 by user 7: boom; nothing was imported"},
		{likes.ErrFenced, "nothing was imported"},
	} {
		o := Options{Path: "x.csv", Batch: 1, Config: config.Default()}
		in := &input{Reader: strings.NewReader("user_id,item_type,item_id\n7,product,4250\n"), close: func() error { return nil }}
		var out bytes.Buffer
		err = importInto(t.Context(), streams{out: &out, err: io.Discard}, o, in, &target{
			types: types,
			apply: func(context.Context, []likes.Mutation) []likes.Result {
				return []likes.Result{{Err: likes.Errorf(c.kind, "boom")}}
			},
		})
		require.ErrorContains(t, err, c.says)
		require.Empty(t, out.String())
	}
}

func TestInterruptedWhileItWaitsForInput(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stdin, source := io.Pipe()
	done := make(chan struct{})
	s := memory.New()
	seen := make(chan struct{}, 1)
	go func() {
		defer close(done)
		o := Options{Path: "-", Batch: 1, Config: config.Default()}
		in, err := openInput(ctx, stdin, "-")
		if err != nil {
			t.Error(err)
			return
		}
		var out bytes.Buffer
		err = importInto(ctx, streams{out: &out, err: io.Discard}, o, in, &target{
			types: likes.DefaultItemTypes(),
			apply: func(ctx context.Context, ms []likes.Mutation) []likes.Result {
				defer func() { seen <- struct{}{} }()
				return s.Apply(ctx, ms)
			},
		})
		if cli.CodeOf(err) != cli.Interrupted || !strings.Contains(err.Error(), "everything up to line 2 has been imported;") {
			t.Errorf("%d %v", cli.CodeOf(err), err)
		}
	}()
	_, err := io.WriteString(source, "user_id,item_type,item_id\n1,post,1\n")
	require.NoError(t, err)
	<-seen
	cancel()
	<-done
	require.EqualValues(t, 1, total(t, s))
	require.NoError(t, source.Close()) // ends the goroutine that reads
}

func TestExamplesParse(t *testing.T) {
	cmd := newCmd(func(context.Context, streams, Options) error { return nil })
	for line := range strings.Lines(cmd.Example) {
		_, command, _ := strings.Cut(line, "likectl import ")
		args := strings.Fields(command)
		for i, a := range args {
			if a == "configs/tier1.yaml" {
				args[i] = "../../" + a
			}
		}
		cmd := newCmd(func(context.Context, streams, Options) error { return nil })
		cmd.SetArgs(args)
		t.Setenv("LIKECTL_POSTGRES_DSN", "")
		require.NoError(t, cmd.Execute(), line)
	}
}
