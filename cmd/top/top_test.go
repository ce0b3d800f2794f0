package top

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/cmd/cli"
	"likectl/pkg/telemetry"
)

// until is a writer that calls end once it was written to n times.
type until struct {
	text bytes.Buffer // not embedded: its WriteString would go past Write
	n    int
	end  func()
}

func (u *until) Write(p []byte) (int, error) {
	if u.n--; u.n == 0 {
		u.end()
	}
	return u.text.Write(p)
}

func serve(t *testing.T) *httptest.Server {
	t.Helper()
	m := telemetry.New()
	m.Gauge("likectl_queued_operations", "Operations that wait for a transaction.", func() float64 { return 7 })
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.Handler().ServeHTTP(w, r)
		for range 10 { // between this answer and the next
			m.Request("POST /v1/like", 200, time.Millisecond)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// watch runs until n writes were made, which ends it as Ctrl-C does.
func watch(t *testing.T, n int, o Options) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := &until{n: n, end: cancel}
	o.Interval = minInterval
	require.NoError(t, Run(ctx, w, o))
	return w.text.String()
}

func TestATerminalIsRedrawnAndAPipeGetsLines(t *testing.T) {
	s := serve(t)
	screens := watch(t, 2, Options{Admin: s.URL, Terminal: true, Output: cli.Table})
	require.Equal(t, 2, strings.Count(screens, redraw))
	require.Regexp(t, `queued +7 +operations waiting`, screens)

	lines := strings.Split(strings.TrimSpace(watch(t, 4, Options{Admin: s.URL, Output: cli.Table})), "\n")
	require.Len(t, lines, 4)
	require.Contains(t, lines[0], "LIKES/S")
	for _, line := range lines {
		require.Len(t, strings.Fields(strings.ReplaceAll(line, " ms", "")), 14)
		require.NotContains(t, line, "\x1b")
	}
	require.Equal(t, 2, strings.Count(watch(t, 2, Options{Admin: s.URL, Terminal: true, Output: cli.JSON}), `"queued":7`))
}

func TestAServerThatGoesAwayIsShown(t *testing.T) {
	s := serve(t)
	for _, output := range []cli.Output{cli.Table, cli.JSON} {
		answers := 0
		down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if answers++; answers > 1 {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			s.Config.Handler.ServeHTTP(w, r)
		}))
		require.Contains(t, watch(t, 1, Options{Admin: down.URL, Output: output}), "502")
		down.Close()
		err := Run(t.Context(), io.Discard, Options{Admin: down.URL, Interval: minInterval, Output: output})
		require.ErrorContains(t, err, "nothing to show")
	}
}

func TestAFullPipeEndsIt(t *testing.T) {
	s := serve(t)
	r, w := io.Pipe()
	require.NoError(t, r.CloseWithError(errors.New("gone")))
	err := Run(t.Context(), w, Options{Admin: s.URL, Interval: minInterval, Output: cli.Table})
	require.ErrorContains(t, err, "gone")
}

func TestExamplesParse(t *testing.T) {
	for line := range strings.Lines(NewCmd().Example) {
		_, command, _ := strings.Cut(line, "likectl top")
		cmd := newCmd(func(context.Context, io.Writer, Options) error { return nil })
		cmd.SetArgs(strings.Fields(command))
		require.NoError(t, cmd.Execute(), line)
	}
}
