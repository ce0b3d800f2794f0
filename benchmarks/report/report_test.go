package report

import (
	"encoding/xml"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/benchmarks/load"
	"likectl/benchmarks/result"
)

type get struct{}

func (get) Next(b []byte) ([]byte, load.Kind) {
	return append(b, "GET / HTTP/1.1\r\nHost: test\r\n\r\n"...), 0
}

func (get) Answered(load.Kind, int, []byte) string { return "" }

// measured runs a load against a server that answers after a delay, with the scatter
// that a server has.
func measured(t *testing.T, delay time.Duration, rate float64, d time.Duration) result.Run {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-time.After(delay + time.Duration(rand.ExpFloat64()*float64(delay)/10)) //nolint:gosec // scatter
		w.WriteHeader(http.StatusOK)
	}))
	defer s.Close()
	r := result.Run{Wanted: rate, Workload: result.Workload{Name: "write", Connections: 32}, Invalid: []string{}}
	got, err := load.Run(t.Context(), load.Config{
		Network: "tcp", Address: strings.TrimPrefix(s.URL, "http://"), Connections: 32, Rate: rate, Duration: d, Timeout: time.Second,
		Kinds: 1, Source: func(int) load.Source { return get{} },
		Tick: func(in load.Interval) {
			r.Series = append(r.Series, result.Point{At: in.At.Seconds(), OK: in.OK, P50: float64(in.P50) / 1e6, P99: float64(in.P99) / 1e6})
		},
	})
	require.NoError(t, err)
	k := result.Kind{Name: "write", Sent: got.Kinds[0].Sent, OK: got.Kinds[0].OK, Rate: float64(got.Kinds[0].OK) / got.Took.Seconds()}
	k.Latency, err = result.NewLatency(got.Kinds[0].Latency)
	require.NoError(t, err)
	r.Kinds, r.Achieved = []result.Kind{k}, k.Rate
	return r
}

func TestCompareSeesAFifthMoreDelayAndNothingElse(t *testing.T) {
	var old, same, slower result.Run
	t.Run("runs", func(t *testing.T) {
		old = measured(t, 30*time.Millisecond, 200, 8*time.Second)
		same = measured(t, 30*time.Millisecond, 200, 8*time.Second)
		slower = measured(t, 36*time.Millisecond, 200, 8*time.Second)
	})
	c, err := Compare([]result.Run{old}, []result.Run{same})
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, c.Text(&b))
	require.False(t, c.Different(), b.String())
	require.Contains(t, b.String(), "no difference")

	c, err = Compare([]result.Run{old}, []result.Run{slower})
	require.NoError(t, err)
	b.Reset()
	require.NoError(t, c.Text(&b))
	require.True(t, c.Different(), b.String())
	require.InDelta(t, 0.2, c.Differences[0].Change, 0.05, b.String())
	require.Contains(t, b.String(), "p50")
	require.Contains(t, b.String(), "DIFFERS")
	require.Equal(t, "seconds", c.Samples)
}

// few returns runs with values around a centre.
func few(n int, p50 float64, seed uint64) []result.Run {
	r := rand.New(rand.NewPCG(seed, 1))
	runs := make([]result.Run, n)
	for i := range runs {
		v := p50 * (1 + r.NormFloat64()/50)
		runs[i] = result.Run{
			Workload: result.Workload{Name: "write"}, Achieved: 1000, Invalid: []string{},
			Kinds: []result.Kind{{Name: "write", Latency: result.Latency{P50: v, P99: 3 * v, Mean: v}}},
		}
	}
	return runs
}

func TestFiveRunsAreComparedAsRuns(t *testing.T) {
	c, err := Compare(few(8, 10, 1), few(8, 10, 2))
	require.NoError(t, err)
	require.Equal(t, "runs", c.Samples)
	require.False(t, c.Different())
	c, err = Compare(few(8, 10, 1), few(8, 12, 2))
	require.NoError(t, err)
	require.True(t, c.Different())
}

func TestCompareRefusesWhatCannotBeCompared(t *testing.T) {
	good := few(1, 10, 1)
	bad := few(1, 10, 1)
	bad[0].Invalid = []string{"2 counts differ"}
	_, err := Compare(good, bad)
	require.ErrorContains(t, err, "invalid (2 counts differ)")
	other := few(1, 10, 1)
	other[0].Wanted = 7
	_, err = Compare(good, other)
	require.ErrorContains(t, err, "differ in what was asked for")
	_, err = Compare(nil, good)
	require.Error(t, err)
}

func TestFormats(t *testing.T) {
	runs := []result.Run{measured(t, time.Millisecond, 50, 2*time.Second)}
	runs = append(runs, few(3, 10, 1)...)
	for i := range runs {
		runs[i].Wanted = float64(100 * (i + 1))
	}
	runs[3].Invalid = []string{"the backlog was <full>"}
	path := filepath.Join(t.TempDir(), "r.json")
	require.NoError(t, result.Write(path, runs...))
	read, err := result.Read(path)
	require.NoError(t, err)
	require.Equal(t, runs, read)
	want := map[string][]string{
		"text":     {"INVALID: the backlog was <full>", "VALID\n", "p99.9"},
		"markdown": {"| write | 100 |", "**invalid**"},
		"html":     {"Latency by quantile", "Rate and latency", "&lt;full&gt;", "<svg"},
		"go":       {"BenchmarkLoad/workload=write/kind=write/rate=100/conns=32 ", " ns/op"},
	}
	for _, format := range Formats() {
		var b strings.Builder
		require.NoError(t, Write(&b, format, read))
		for _, w := range want[format] {
			require.Contains(t, b.String(), w, format)
		}
		if format == "html" {
			require.NotContains(t, b.String(), "http://www.w3.org/1999/xhtml")
			wellFormed(t, b.String())
		}
	}
	require.Error(t, Write(io.Discard, "pdf", read))
}

// wellFormed reads every drawing as XML and wants no reference to anything outside.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	n := 0
	for _, part := range strings.Split(page, "<svg")[1:] {
		svg, _, ok := strings.Cut("<svg"+part, "</svg>")
		require.True(t, ok)
		d := xml.NewDecoder(strings.NewReader(svg + "</svg>"))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
		}
		n++
	}
	require.GreaterOrEqual(t, n, 4)
	require.NotContains(t, page, "src=")
}
