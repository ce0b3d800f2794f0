package containers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// live and sharing are globals, because TestMain and the tests of a package have nothing else in common.
var (
	live    registry
	sharing shares
)

// registry knows every container of this process.
type registry struct {
	mu  sync.Mutex
	all map[*Container]bool
}

// shares holds one server per type. Its lock is held while one starts: parallel tests wait for the first.
type shares struct {
	mu      sync.Mutex
	main    bool // Main runs, so shared servers will be removed
	servers map[reflect.Type]server
}

func (r *registry) add(c *Container) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = make(map[*Container]bool)
	}
	r.all[c] = true
}

func (r *registry) drop(c *Container) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, c)
}

// removeAll removes every container that is still there.
func (r *registry) removeAll() error {
	r.mu.Lock()
	left := make([]*Container, 0, len(r.all))
	for c := range r.all {
		left = append(left, c)
	}
	r.mu.Unlock()
	errs := make([]error, 0, len(left))
	for _, c := range left {
		errs = append(errs, c.remove())
	}
	return errors.Join(errs...)
}

// Main is the TestMain of a package that uses shared servers: it runs the tests, removes the servers (also on an
// interrupt), and then fails the package when goroutines are left.
func Main(m *testing.M, leakOptions ...goleak.Option) {
	sharing.mu.Lock()
	sharing.main = true
	sharing.mu.Unlock()
	interrupt := make(chan os.Signal, 1)
	signal.Notify(interrupt, os.Interrupt, syscall.SIGTERM)
	done := make(chan int, 1)
	go func() { done <- m.Run() }()
	code := 130
	select {
	case code = <-done:
	case <-interrupt:
	}
	signal.Stop(interrupt)
	err := live.removeAll()
	if code == 0 {
		err = errors.Join(err, goleak.Find(leakOptions...))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// server is what every backend type embeds.
type server interface{ base() *Container }

func (c *Container) base() *Container { return c }

// start opens a server for this test alone.
func start[T server](tb testing.TB, open func(context.Context) (T, error)) T {
	tb.Helper()
	skipWhenShort(tb)
	s, err := open(tb.Context())
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, s.base().remove()) })
	return s
}

// share returns the package's server of type T; the first test that asks starts it.
func share[T server](tb testing.TB, open func(context.Context) (T, error)) T {
	tb.Helper()
	skipWhenShort(tb)
	sharing.mu.Lock()
	defer sharing.mu.Unlock()
	require.True(tb, sharing.main, "a shared server needs TestMain to call containers.Main, which removes it")
	if known, ok := sharing.servers[reflect.TypeFor[T]()].(T); ok {
		return known
	}
	s, err := open(context.Background())
	require.NoError(tb, err)
	s.base().shared = true
	if sharing.servers == nil {
		sharing.servers = make(map[reflect.Type]server)
	}
	sharing.servers[reflect.TypeFor[T]()] = s
	return s
}

// skipWhenShort keeps `go test -short` free of Docker; `make test` never passes -short.
func skipWhenShort(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("needs a real server in a container; run without -short")
	}
}
