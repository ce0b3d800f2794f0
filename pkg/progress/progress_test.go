package progress

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// screen collects what is written.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func TestNothingIsSaidOfShortWork(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var out screen
			r := start(&out, "lines", func() Sample { return Sample{Done: 1} }, terminal)
			time.Sleep(patience - time.Millisecond)
			r.Stop()
			require.Empty(t, out.text.String())
		})
	}
}

func TestLinesTellRateShareAndTimeLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out screen
		began := time.Now()
		r := start(&out, "lines", func() Sample {
			return Sample{Done: int64(100 * time.Since(began).Seconds()), Total: 2000}
		}, false)
		time.Sleep(13 * time.Second)
		r.Stop()
		require.Equal(t, []string{
			"200 lines, 100/s, 10%, about 18s left",
			"700 lines, 100/s, 35%, about 13s left",
			"1200 lines, 100/s, 60%, about 8s left",
		}, strings.Split(strings.TrimSpace(out.text.String()), "\n"))
	})
}

func TestStalledWorkHasNoTimeLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out screen
		r := start(&out, "lines", func() Sample { return Sample{Done: 7, Total: 9, Stalled: "no route to host"} }, false)
		time.Sleep(3 * time.Second)
		r.Stop()
		require.Equal(t, "7 lines; nothing gets through, trying again: no route to host\n", out.text.String())
	})
}

func TestLinesWithoutATotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out screen
		r := start(&out, "items", func() Sample { return Sample{Done: 0} }, false)
		time.Sleep(3 * time.Second)
		r.Stop()
		require.Equal(t, "0 items, 0/s\n", out.text.String())
	})
}

func TestTheBarIsDrawnOnOneLineAndTakenOff(t *testing.T) {
	for want, total := range map[string]int64{
		"[====                    ] 200 lines, 100/s, 17%, about 10s left": 1200,
		"200 lines, 100/s": 0,
		"[========================] 200 lines, 100/s, 100%, about 0s left": 100,
	} {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out screen
				r := start(&out, "lines", func() Sample { return Sample{Done: 200, Total: total} }, true)
				time.Sleep(patience + barEvery/2)
				r.Stop()
				require.Equal(t, clearLine+want+clearLine, out.text.String())
			})
		})
	}
}
