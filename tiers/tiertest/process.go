package tiertest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Build builds the real binary, with build tags if any, and returns its path.
func Build(tb testing.TB, tags ...string) string {
	tb.Helper()
	bin := filepath.Join(tb.TempDir(), "likectl")
	out, err := exec.CommandContext(tb.Context(), "go", "build", "-tags", strings.Join(tags, ","), "-o", bin, "likectl/cmd/likectl").CombinedOutput()
	require.NoError(tb, err, "%s", out)
	return bin
}

// Likectl runs a command of the binary and returns what it printed to standard
// output, without the space around it.
func Likectl(tb testing.TB, bin string, env []string, args ...string) string {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), bin, args...)
	cmd.Env = append(os.Environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(tb, err, "likectl %s: %s", strings.Join(args, " "), &stderr)
	return strings.TrimSpace(string(out))
}

// Server is a `likectl serve` of its own.
type Server struct {
	// URL is the API's base URL. It stays the same over restarts.
	URL string
	// AdminURL is that of the admin listener.
	AdminURL string

	bin  string
	args []string
	env  []string
	log  string
	cmd  *exec.Cmd
}

// StartServer starts `likectl serve` with the arguments and listeners of its own
// and returns once it is ready. It limits no calls unless env says so. It is killed
// when the test ends.
func StartServer(tb testing.TB, bin string, env []string, args ...string) *Server {
	tb.Helper()
	api, admin := freeAddr(tb), freeAddr(tb)
	s := &Server{
		URL: "http://" + api, AdminURL: "http://" + admin, bin: bin, env: env,
		args: append([]string{"serve", "--listen", api, "--admin-listen", admin}, args...),
		log:  filepath.Join(tb.TempDir(), "serve.log"),
	}
	require.NoError(tb, s.Start(tb.Context()))
	tb.Cleanup(func() {
		if s.cmd != nil {
			require.NoError(tb, s.Kill())
		}
		if tb.Failed() {
			tb.Logf("the end of the server's log:\n%s", s.tail())
		}
	})
	return s
}

// freeAddr returns an address that nobody listens on.
func freeAddr(tb testing.TB) string {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	require.NoError(tb, l.Close())
	return l.Addr().String()
}

// Start starts the process again and returns once it is ready.
func (s *Server) Start(ctx context.Context) error {
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()     // the process has its own copy
	s.cmd = exec.Command(s.bin, s.args...) //nolint:noctx // it outlives any context and is killed by Kill
	// The suites like faster than anybody may. env comes later and can say else.
	s.cmd.Env = append(append(os.Environ(), "LIKECTL_LIMITS_ENABLED=false"), s.env...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	return s.Ready(ctx)
}

// PID returns the process id, for tracing.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Kill ends the process as kill -9 does and returns once it is gone.
func (s *Server) Kill() error {
	err := s.cmd.Process.Kill()
	_ = s.cmd.Wait() // it says "killed"
	s.cmd = nil
	return err
}

// Ready returns once /readyz answers 200.
func (s *Server) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		last := s.ready(ctx)
		if last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready after %v: %w\n%s", s.URL, patience, last, s.tail())
		case <-tick.C:
		}
	}
}

func (s *Server) ready(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz says %s", resp.Status)
	}
	return nil
}

// Log returns what the process has printed and logged, over all its starts.
func (s *Server) Log() (string, error) {
	text, err := os.ReadFile(s.log)
	return string(text), err
}

// tail returns the end of the server's log.
func (s *Server) tail() string {
	const most = 4000
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}
