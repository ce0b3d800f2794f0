package bench

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/benchmarks/result"
	"likectl/cmd/app"
	"likectl/cmd/cli"
	"likectl/pkg/config"
	"likectl/pkg/store/postgres"
	containers "likectl/testcontainers"
)

func TestMain(m *testing.M) { containers.Main(m) }

func execute(t *testing.T, args ...string) (out string, code int, err error) {
	t.Helper()
	cmd := NewCmd()
	var b bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetOut(&b)
	cmd.SetErr(io.Discard)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return b.String(), cli.CodeOf(err), err
}

// serve starts a server on a new data folder.
func serve(t *testing.T) (api, admin, data string) {
	t.Helper()
	return serveWith(t, config.Default())
}

func serveWith(t *testing.T, cfg config.Config) (api, admin, data string) {
	t.Helper()
	cfg.Data, cfg.Listen, cfg.AdminListen = t.TempDir(), "127.0.0.1:0", "127.0.0.1:0"
	s, err := app.Open(t.Context(), cfg, app.Quiet(), false)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-done) })
	return "http://" + s.Addr(), "http://" + s.AdminAddr(), cfg.Data
}

func TestARunEndToEnd(t *testing.T) {
	api, admin, data := serve(t)
	file := filepath.Join(t.TempDir(), "r.json")
	common := []string{"--url", api, "--admin", admin, "--data", data, "--duration", "1s", "--warmup", "200ms", "--connections", "8", "--items", "1000", "--users", "1000"}
	args := append([]string{
		"run", "--workload", "default", "--rate", "0", "--preload", "5000", "--out", file, "--watch", "me=" + strconv.Itoa(os.Getpid()), "--expect", "counts.errors<=0",
	}, common...)
	out, code, err := execute(t, args...)
	require.NoError(t, err, out)
	require.Zero(t, code)
	require.Contains(t, out, "VALID")
	require.Contains(t, out, "counts equal their edges")
	runs, err := result.Read(file)
	require.NoError(t, err)
	require.True(t, runs[0].Valid())
	require.GreaterOrEqual(t, runs[0].Check.Counters, int64(1000), "every item was preloaded")
	counts, ok := runs[0].Kind("counts")
	require.True(t, ok)
	require.Positive(t, counts.OK)
	require.Equal(t, counts.OK, counts.Latency.Count)

	_, code, err = execute(t, append([]string{"run", "--workload", "write", "--rate", "0", "--expect", "write.p99<=1ns"}, common...)...)
	require.Equal(t, cli.Threshold, code)
	require.ErrorContains(t, err, "write.p99<=1ns: it was")

	out, code, err = execute(t, "report", "--format", "markdown", file)
	require.NoError(t, err)
	require.Zero(t, code)
	require.Contains(t, out, "| default |")
	out, _, err = execute(t, "compare", file, file)
	require.NoError(t, err, out)
	require.Contains(t, out, "no difference")
}

// A count that is wrong makes a run invalid, however fast it was.
func TestAWrongCountMakesARunInvalid(t *testing.T) {
	r := result.Run{Invalid: []string{"1 of 5 counts differ from their edges"}}
	err := verdict(&r, nil)
	require.Equal(t, cli.Threshold, cli.CodeOf(err))
	require.ErrorContains(t, err, "1 of 5 counts differ")
}

// Lateness of the generator is part of the latency: a limit that is kept with it is
// kept without it.
func TestALateGeneratorDoesNotMissALimitThatIsKept(t *testing.T) {
	limit, err := parseExpectation("write.p99<=50ms")
	require.NoError(t, err)
	run := func(p99 float64, invalid ...string) *result.Run {
		return &result.Run{Invalid: invalid, Limited: true, Kinds: []result.Kind{{Name: "write", Latency: result.Latency{P99: p99}}}}
	}
	require.Empty(t, within(run(8, "the generator was late"), []expectation{limit}))
	require.Equal(t, "write.p99<=50ms: it was 80ms; the generator was late", within(run(80, "the generator was late"), []expectation{limit}))
	require.NotEmpty(t, within(run(8, "the generator was late", "2 counts differ"), []expectation{limit}))
}

func TestUsageErrors(t *testing.T) {
	for _, c := range []struct {
		want string
		args []string
	}{
		{`workload "x" is unknown`, []string{"run", "--workload", "x"}},
		{"http://HOST:PORT", []string{"run", "--url", "https://example.org"}},
		{"0 connections", []string{"run", "--connections", "0"}},
		{"a rate of -1", []string{"run", "--rate", "-1"}},
		{"want KIND.MEASURE<=VALUE", []string{"run", "--expect", "write.p98<=1s"}},
		{"want KIND.MEASURE<=VALUE", []string{"run", "--expect", "likes.p99<=1s"}},
		{"want KIND.MEASURE<=VALUE", []string{"capacity", "--limit", "write.p99<=fast"}},
		{"want NAME=PID", []string{"run", "--watch", "x"}},
		{"there is no process", []string{"run", "--watch", "x=999999999"}},
		{"have no more than 4", []string{"run", "--users", "2", "--items", "2", "--preload", "5"}},
		{"--from, --to and --precision", []string{"capacity", "--from", "0"}},
		{"--format pdf", []string{"report", "--format", "pdf", "x"}},
	} {
		_, code, err := execute(t, c.args...)
		require.ErrorContains(t, err, c.want)
		require.Equal(t, cli.Usage, code, c.args)
	}
	_, code, err := execute(t, "run", "--admin", "http://127.0.0.1:1", "--data", t.TempDir())
	require.Equal(t, cli.Failure, code)
	require.ErrorContains(t, err, "nothing was sent")
}

// A run whose API is not there ends at once instead of failing for its whole time.
func TestWithoutAnAPINoRequestIsSent(t *testing.T) {
	_, admin, data := serve(t)
	_, code, err := execute(t, "run", "--url", "http://127.0.0.1:1", "--admin", admin, "--data", data, "--duration", "1h")
	require.Equal(t, cli.Failure, code)
	require.ErrorContains(t, err, "no request was sent: no API answers at http://127.0.0.1:1, name it with --url")
}

func TestPreloadMakesEdgesOnce(t *testing.T) {
	api, admin, data := serve(t)
	args := []string{
		"run", "--url", api, "--admin", admin, "--data", data, "--duration", "100ms", "--warmup", "0s", "--rate", "0", "--workload", "count",
		"--users", "100", "--items", "70", "--preload", "7000", "--connections", "2",
	}
	for range 2 {
		out, _, err := execute(t, args...)
		require.NoError(t, err, out)
		require.Contains(t, out, "all of 70 counts equal their edges")
	}
	out, _, err := execute(t, append(args, "--output", "json")...)
	require.NoError(t, err)
	require.Contains(t, out, `"counters":70,"different":0`)
}

func TestTheLogOfPostgresIsMeasured(t *testing.T) {
	dsn := containers.SharedPostgres(t).Database(t)
	_, err := postgres.SchemaUp(t.Context(), dsn)
	require.NoError(t, err)
	cfg := config.Default()
	cfg.Postgres.DSN = config.Secret(dsn)
	api, admin, data := serveWith(t, cfg)
	t.Setenv("LIKECTL_POSTGRES_DSN", dsn)
	file := filepath.Join(t.TempDir(), "r.json")
	out, _, err := execute(t, "run", "--url", api, "--admin", admin, "--data", data, "--workload", "write", "--rate", "0", "--duration", "2s", "--warmup", "100ms",
		"--connections", "8", "--out", file)
	require.NoError(t, err, out)
	require.Contains(t, out, "bytes a like")
	runs, err := result.Read(file)
	require.NoError(t, err)
	s := runs[0].Server
	require.Greater(t, s.Log, int64(50*s.Operations), "%+v", s)
	require.Positive(t, s.Flushes)
	require.Positive(t, runs[0].Series[0].Log)
	out, _, err = execute(t, "report", "--format", "html", file)
	require.NoError(t, err)
	require.Contains(t, out, "The database&#39;s log")
}
