package bench

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"

	"likectl/benchmarks/load"
	"likectl/benchmarks/result"
	"likectl/benchmarks/workload"
)

func TestFindStopsAtTheKnee(t *testing.T) {
	for _, knee := range []float64{0.5, 40, 1234, 90_000} {
		tried := 0
		found, err := Find(t.Context(), Config{Preload: 10}, Search{
			From: 100, To: 50_000, Precision: 0.05,
			Within: func(r *result.Run) string {
				if r.Wanted > knee {
					return "slow"
				}
				return ""
			},
			Tried: func(*result.Run, string) { tried++ },
			run: func(_ context.Context, c Config) (result.Run, error) {
				require.Equal(t, tried == 0, c.Preload == 10, "the preload is made once")
				return result.Run{Wanted: c.Rate}, nil
			},
		})
		require.NoError(t, err)
		require.Len(t, found.Runs, tried)
		switch {
		case knee < 2:
			require.Zero(t, found.Knee)
			require.Equal(t, "slow", found.Why)
		case knee > 50_000:
			require.InDelta(t, 50_000, found.Knee, 0)
			require.Zero(t, found.Missed)
		default:
			require.LessOrEqual(t, found.Knee, knee)
			require.InEpsilon(t, knee, found.Knee, 0.06)
			require.InDelta(t, 0.7*found.Knee, found.Runs[len(found.Runs)-1].Wanted, 1)
		}
	}
}

// Where the generator is what is slow from the first rate on, nothing is known.
func TestFindEndsWhereTheGeneratorIsTheLimit(t *testing.T) {
	_, err := Find(t.Context(), Config{}, Search{
		From: 100, To: 1000, Precision: 0.1,
		Within: func(*result.Run) string { return "late" }, Tried: func(*result.Run, string) {},
		run: func(_ context.Context, c Config) (result.Run, error) {
			return result.Run{Wanted: c.Rate, Limited: true}, nil
		},
	})
	require.ErrorIs(t, err, ErrLimited)
	require.ErrorContains(t, err, "at 100 a second")
}

func TestJudge(t *testing.T) {
	late := func(ms float64) result.Run {
		return result.Run{Wanted: 100, Seconds: 10, Workload: result.Workload{Duration: 10}, Late: result.Latency{P99: ms}}
	}
	for want, c := range map[string]struct {
		run      result.Run
		got      load.Result
		sent, ok int64
	}{
		"":                       {late(0.1), load.Result{Due: 1000}, 1000, 995},
		"nothing was sent":       {late(0.1), load.Result{Due: 1000}, 0, 0},
		"less than 99 %":         {late(0.1), load.Result{Due: 1000}, 1000, 989},
		"the backlog was full":   {late(0.1), load.Result{Due: 1000, Unsent: 1}, 1000, 1000},
		"the generator itself":   {late(1.5), load.Result{Due: 1000}, 1000, 1000},
		"slower than the wanted": {result.Run{Wanted: 100, Seconds: 11, Workload: result.Workload{Duration: 10}}, load.Result{Due: 1000}, 1000, 1000},
	} {
		r := c.run
		judge(&r, c.got, c.sent, c.ok)
		if want == "" {
			require.Empty(t, r.Invalid)
			continue
		}
		require.Len(t, r.Invalid, 1, want)
		require.Contains(t, r.Invalid[0], want)
	}
}

func TestPreloadedEdgesDiffer(t *testing.T) {
	for _, p := range []workload.Population{{Users: 7, Items: 11}, {Users: 10, Items: 10}, {Users: 3, Items: 1}, {Users: 100, Items: 1000}} {
		c := Config{Population: p, ItemNumber: 1}
		seen := map[any]bool{}
		for i := range p.Users * p.Items {
			e := c.edge(i)
			require.NoError(t, e.Validate())
			require.False(t, seen[e], "%v twice", e)
			seen[e] = true
		}
	}
}

// The edges of a large population are spread over all its items.
func TestPreloadedEdgesAreSpread(t *testing.T) {
	c := Config{Population: workload.Population{Users: 100_000, Items: 100_000}, ItemNumber: 1}
	items := map[any]int{}
	for i := range int64(200_000) {
		items[c.edge(i).Item]++
	}
	require.Len(t, items, 100_000)
}

func TestWatchCountsDescendants(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "sh -c 'while :; do :; done'")
	require.NoError(t, cmd.Start())
	defer func() { require.Error(t, cmd.Wait()) }()
	defer func() { require.NoError(t, cmd.Process.Kill()) }()
	w := newWatch(map[string]int{"busy": cmd.Process.Pid, "me": os.Getpid()})
	w.start(t.Context(), 0)
	<-w.ready
	require.Eventually(t, func() bool { return w.read()["busy"]-w.from["busy"] > 50*time.Millisecond }, 20*time.Second, 10*time.Millisecond)
	require.Greater(t, w.step()["busy"], 0.0)
	out := w.stop(1000)
	require.Len(t, out, 2)
	require.Positive(t, out[0].PerRequest)
	require.GreaterOrEqual(t, out[1].CPU, out[0].CPU, "a child is counted with its parent")
	for child, p := range processTimes() { // the inner shell outlives the outer one
		if p.parent == cmd.Process.Pid {
			proc, err := os.FindProcess(child)
			require.NoError(t, err)
			require.NoError(t, proc.Kill())
		}
	}
}

func TestParseStat(t *testing.T) {
	pid, p, err := parseStat([]byte("42 (a) b (c) S 7 1 1 0 -1 0 0 0 0 0 11 22 33 44 20 0"))
	require.NoError(t, err)
	require.Equal(t, 42, pid)
	require.Equal(t, processTime{parent: 7, cpu: 1100 * time.Millisecond}, p)
	for _, bad := range []string{"", "42 (a S 7", "42 (a) S 7 1", "x (a) S 7 1 1 0 -1 0 0 0 0 0 11 22 33 44 20 0"} {
		_, _, err := parseStat([]byte(bad))
		require.ErrorIs(t, err, errStat, bad)
	}
}

func TestLatencyKeepsTheWhole(t *testing.T) {
	h := hdrhistogram.New(1, 60_000_000, 3)
	for i := range int64(10_000) {
		require.NoError(t, h.RecordValue(i+1))
	}
	l, err := result.NewLatency(h)
	require.NoError(t, err)
	require.InDelta(t, 9.9, l.P99, 0.02)
	back, err := l.Histogram()
	require.NoError(t, err)
	require.Equal(t, h.ValueAtQuantile(99.9), back.ValueAtQuantile(99.9))
	require.Equal(t, int64(10_000), back.TotalCount())
}
