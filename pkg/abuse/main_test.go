package abuse

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"likectl/pkg/likes"
	"likectl/pkg/limit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tb is what testing.TB and rapid.T have in common.
type tb interface {
	require.TestingT
	Helper()
}

// told is what a guard has told its hooks and its log.
type told struct {
	mu       sync.Mutex
	log      bytes.Buffer
	refused  map[string]int
	scored   map[string]int
	read, ok int
}

func (s *told) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

// see calls a function with what has been told.
func (s *told) see(f func(*told)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

func (s *told) logged() (text string) {
	s.see(func(s *told) { text = s.log.String() })
	return text
}

// open opens a guard of the configuration that has all its hooks.
func open(t tb, cfg Config) (*Guard, *told) {
	t.Helper()
	s := &told{refused: map[string]int{}, scored: map[string]int{}}
	if cfg.Refresh == 0 {
		cfg.Refresh = time.Hour
	}
	if cfg.Velocity.MaxKeys == 0 {
		cfg.Velocity.MaxKeys = 1000
	}
	if cfg.SlowFactor == 0 {
		cfg.SlowFactor = 10
	}
	cfg.Types, cfg.Log = likes.DefaultItemTypes(), slog.New(slog.NewTextHandler(s, nil))
	cfg.Hooks = Hooks{
		Refused: func(reason string) { s.see(func(s *told) { s.refused[reason]++ }) },
		Scored:  func(result string) { s.see(func(s *told) { s.scored[result]++ }) },
		Read: func(_ string, err error) {
			s.see(func(s *told) {
				s.read++
				if err == nil {
					s.ok++
				}
			})
		},
	}
	g, err := Open(context.Background(), cfg)
	require.NoError(t, err)
	return g, s
}

// guard opens a guard and closes it at the end of the test.
func guard(t *testing.T, cfg Config) (*Guard, *told) {
	t.Helper()
	g, s := open(t, cfg)
	t.Cleanup(func() { require.NoError(t, g.Close(context.Background())) })
	return g, s
}

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// like is an attempt of a user from an address.
func like(user likes.UserID, item likes.ItemID, addr string) Attempt {
	a := Attempt{Edge: likes.Edge{Counter: likes.Likes, Item: likes.Item{Type: 1, ID: item}, User: user}}
	if addr != "" {
		a.Addr, a.Network = netip.MustParseAddr(addr), addr
	}
	return a
}

func perMinute(n int) []limit.Limit { return []limit.Limit{{Max: n, Window: time.Minute}} }

// usedUp returns the velocity limit that an error says is used up, "" if none.
func usedUp(err error) string {
	if used, ok := errors.AsType[*LimitError](err); ok {
		return used.Limit
	}
	return ""
}
