package workload

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/benchmarks/load"
)

// tally is what a thousand requests of a workload were.
type tally struct {
	kinds          map[load.Kind]int
	likes, unlikes int
	repeats, hot   int
}

// draw makes requests and reads them as a server would.
func draw(t *testing.T, name string, n int) tally {
	t.Helper()
	mix, err := Named(name)
	require.NoError(t, err)
	of := Population{Users: 1000, Items: 100_000}
	s := NewSource(Target{Host: "h", Token: "t", ItemType: "post"}, mix, of, 7, 3)
	again := NewSource(Target{Host: "h", Token: "t", ItemType: "post"}, mix, of, 7, 3)
	got := tally{kinds: map[load.Kind]int{}}
	seen := map[string]bool{}
	for range n {
		b, k := s.Next(nil)
		same, _ := again.Next(nil)
		require.Equal(t, string(same), string(b))
		got.kinds[k]++
		req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(b))))
		require.NoError(t, err)
		require.Equal(t, "Bearer t", req.Header.Get("Authorization"))
		body, err := io.ReadAll(req.Body)
		require.NoError(t, err)
		require.Equal(t, k != Count, json.Valid(body), "%s", body)
		if k != Write {
			continue
		}
		var op struct {
			Item string `json:"item_id"`
			User string `json:"user_id"`
		}
		require.NoError(t, json.Unmarshal(body, &op))
		if len(op.Item) <= 3 && (len(op.Item) < 3 || op.Item == "100") {
			got.hot++
		}
		key := op.User + " " + op.Item
		switch {
		case req.Method == http.MethodDelete:
			_, ever := seen[key]
			require.True(t, ever, "an unlike of what was never liked")
			got.unlikes++
		case seen[key]:
			got.repeats++
		default:
			got.likes++
		}
		seen[key] = req.Method == http.MethodPost
	}
	return got
}

func TestTheDefaultIsThatOfTheDocuments(t *testing.T) {
	got := draw(t, "default", 20_000)
	require.InDelta(t, 198, got.kinds[Write], 50, "reads to writes 100 to 1")
	require.InDelta(t, 20_000*60/101, got.kinds[Counts], 600)
	got = draw(t, "write", 20_000)
	require.InDelta(t, 10_000, got.hot, 600, "half on a thousandth")
	require.InDelta(t, 2000, got.unlikes, 300)
	require.Greater(t, got.repeats, 700)
}

func TestWorkloads(t *testing.T) {
	got := draw(t, "hot", 1000)
	require.Equal(t, 1000, got.hot)
	got = draw(t, "cold", 1000)
	require.Zero(t, got.unlikes)
	require.Less(t, got.repeats, 10)
	got = draw(t, "toggles", 2000)
	require.InDelta(t, 1000, got.unlikes, 150)
	got = draw(t, "duplicates", 2000)
	require.InDelta(t, 1800, got.repeats, 150)
	require.Equal(t, map[load.Kind]int{Batch: 100}, draw(t, "batch", 100).kinds)
	for _, name := range Names() {
		draw(t, name, 10)
		require.Contains(t, Describe(), name)
	}
	_, err := Named("nothing")
	require.ErrorContains(t, err, "default, write, hot")
}

func TestAnAnswerMustBeWhatWasAskedFor(t *testing.T) {
	mix, err := Named("write")
	require.NoError(t, err)
	s := NewSource(Target{}, mix, Population{Users: 10, Items: 10}, 1, 0)
	_, k := s.Next(nil)
	require.Empty(t, s.Answered(k, 200, []byte(`{"status":"liked","user_liked":true}`)))
	require.Equal(t, "answer", s.Answered(k, 200, []byte(`{"status":"unliked","user_liked":false}`)))
	require.Equal(t, "status", s.Answered(k, 503, nil))
	require.Equal(t, "entry", s.Answered(Counts, 200, []byte(`{"counts":{},"errors":{}}`)))
}
