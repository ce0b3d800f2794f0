package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"likectl/pkg/likes"
)

// ServerConfig bounds what clients can make a listener hold. All are needed.
type ServerConfig struct {
	// ReadHeaderTimeout and ReadTimeout are the time for a client to send its
	// headers, and its whole request. Slower ones lose their connection.
	ReadHeaderTimeout, ReadTimeout time.Duration
	// WriteTimeout is the time from the headers to the end of the answer: it
	// must leave room for the body and for Limits.RequestTimeout.
	WriteTimeout time.Duration
	// IdleTimeout is how long a connection without a request is kept.
	IdleTimeout time.Duration
	// MaxHeader is the size of the headers in bytes (net/http adds 4 KiB).
	MaxHeader int
	// MaxConns is the number of open connections; those beyond are closed at
	// once, which costs a client a retry and the others nothing. It is lowered
	// to what the process's limit of open files allows.
	MaxConns int
}

// DefaultServer returns the bounds unless configured otherwise.
func DefaultServer() ServerConfig {
	return ServerConfig{
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: time.Minute, MaxHeader: 16 << 10, MaxConns: 20_000,
	}
}

func (c ServerConfig) check() error {
	for _, d := range []struct {
		name string
		d    time.Duration
	}{
		{"read header timeout", c.ReadHeaderTimeout},
		{"read timeout", c.ReadTimeout},
		{"write timeout", c.WriteTimeout},
		{"idle timeout", c.IdleTimeout},
	} {
		if d.d <= 0 {
			return likes.Errorf(likes.ErrInvalid, "%s %v, want more than 0", d.name, d.d)
		}
	}
	switch {
	case c.MaxHeader < 1:
		return likes.Errorf(likes.ErrInvalid, "max header %d, want at least 1 byte", c.MaxHeader)
	case c.MaxConns < 1:
		return likes.Errorf(likes.ErrInvalid, "max connections %d, want at least 1", c.MaxConns)
	case c.WriteTimeout <= c.ReadTimeout:
		return likes.Errorf(likes.ErrInvalid, "write timeout %v counts from the headers and must be more than the read timeout %v", c.WriteTimeout, c.ReadTimeout)
	}
	return nil
}

// Server is a listener's HTTP server.
type Server struct {
	http     *http.Server
	maxConns int
	refused  atomic.Int64
}

// NewServer returns a server for the handler, or ErrInvalid that names a bound
// out of range.
func NewServer(h http.Handler, cfg ServerConfig, log *slog.Logger) (*Server, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	files, err := openFiles()
	if err != nil {
		return nil, err
	}
	conns := connsWithin(cfg.MaxConns, files)
	if conns < cfg.MaxConns {
		log.Warn("connections are capped by the limit of open files; raise it (ulimit -n, LimitNOFILE) to allow more",
			"max_connections", cfg.MaxConns, "capped_at", conns, "open_files", files)
	}
	return &Server{maxConns: conns, http: &http.Server{
		Handler:           h,
		ReadHeaderTimeout: cfg.ReadHeaderTimeout,
		ReadTimeout:       cfg.ReadTimeout,
		WriteTimeout:      cfg.WriteTimeout,
		IdleTimeout:       cfg.IdleTimeout,
		MaxHeaderBytes:    cfg.MaxHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}, nil
}

// Serve answers connections of the listener until Shutdown, and closes it.
func (s *Server) Serve(l net.Listener) error {
	err := s.http.Serve(&boundedListener{Listener: l, limit: int64(s.maxConns), refused: &s.refused})
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve %s: %w", l.Addr(), err)
}

// Shutdown stops listening and waits for the requests in flight. Those that are
// still there when the context ends lose their connection, and the error says so:
// their clients do not know what was applied and may repeat.
func (s *Server) Shutdown(ctx context.Context) error {
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("stop serving: requests still in flight were cut off: %w", err), s.http.Close())
	}
	return nil
}

// Refused returns how many connections were closed for being too many.
func (s *Server) Refused() int64 { return s.refused.Load() }

// boundedListener closes connections beyond a number of open ones at once.
// Leaving them in the backlog instead would make every client wait for the
// slowest ones.
type boundedListener struct {
	net.Listener
	limit   int64
	open    atomic.Int64
	refused *atomic.Int64
}

// Accept returns the next connection that is within the limit.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= l.limit {
			return &boundedConn{Conn: c, open: &l.open}, nil
		}
		l.open.Add(-1)
		l.refused.Add(1)
		_ = c.Close() // nothing was read or written
	}
}

// boundedConn counts itself out when it is closed.
type boundedConn struct {
	net.Conn
	open *atomic.Int64
	once sync.Once
}

// Close closes the connection.
func (c *boundedConn) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

// CloseWrite lets net/http end an answer before it drops what the client still
// sends; otherwise the client's kernel would discard the answer (413, 408).
func (c *boundedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
