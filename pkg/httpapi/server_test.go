package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/auth"
	"likectl/pkg/likes"
)

// serving runs a server on a local port until the test ends.
func serving(tb testing.TB, h http.Handler, change func(*ServerConfig)) (*Server, string) {
	tb.Helper()
	cfg := DefaultServer()
	change(&cfg)
	s, err := NewServer(h, cfg, slog.New(slog.DiscardHandler))
	require.NoError(tb, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), 10*time.Second)
		defer cancel()
		require.NoError(tb, s.Shutdown(ctx))
		require.NoError(tb, <-done)
	})
	return s, l.Addr().String()
}

// httpClient returns a client that holds no connection beyond the test.
func httpClient(tb testing.TB) *http.Client {
	tr := &http.Transport{}
	tb.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 20 * time.Second}
}

func dial(tb testing.TB, addr string) net.Conn {
	tb.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = c.Close() })
	require.NoError(tb, c.SetDeadline(time.Now().Add(60*time.Second)))
	return c
}

// closedBy reads a connection to its end and returns what came.
func closedBy(tb testing.TB, c net.Conn) string {
	tb.Helper()
	b, err := io.ReadAll(c)
	if err != nil && !strings.Contains(err.Error(), "reset") {
		require.NoError(tb, err)
	}
	return string(b)
}

func TestServer_RefusesBoundsThatAreNone(t *testing.T) {
	for name, change := range map[string]func(*ServerConfig){
		"read header timeout": func(c *ServerConfig) { c.ReadHeaderTimeout = 0 },
		"read timeout":        func(c *ServerConfig) { c.ReadTimeout = -1 },
		"write timeout":       func(c *ServerConfig) { c.WriteTimeout = c.ReadTimeout },
		"idle timeout":        func(c *ServerConfig) { c.IdleTimeout = 0 },
		"max header":          func(c *ServerConfig) { c.MaxHeader = 0 },
		"max connections":     func(c *ServerConfig) { c.MaxConns = 0 },
	} {
		cfg := DefaultServer()
		change(&cfg)
		_, err := NewServer(http.NotFoundHandler(), cfg, slog.New(slog.DiscardHandler))
		require.ErrorIs(t, err, likes.ErrInvalid)
		require.ErrorContains(t, err, name)
	}
}

func TestConnsWithin_LeavesFilesForTheStore(t *testing.T) {
	require.Equal(t, 20_000, connsWithin(20_000, 1<<20))
	require.Equal(t, 20_000, connsWithin(20_000, 20_256))
	require.Equal(t, 19_744, connsWithin(20_000, 20_000))
	require.Equal(t, 128, connsWithin(20_000, 256))
	require.Equal(t, 3, connsWithin(3, 1024))
}

func TestServer_ClosesConnectionsBeyondTheCapAtOnce(t *testing.T) {
	s, addr := serving(t, newFixture(t).api, func(c *ServerConfig) { c.MaxConns = 2 })
	alive := func(c net.Conn) bool {
		_, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		if err != nil {
			return false
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return false
		}
		defer func() { _ = resp.Body.Close() }()
		_, err = io.Copy(io.Discard, resp.Body)
		return err == nil && resp.StatusCode == 200
	}
	first, second := dial(t, addr), dial(t, addr)
	require.True(t, alive(first) && alive(second))
	require.False(t, alive(dial(t, addr)))
	require.EqualValues(t, 1, s.Refused())
	require.True(t, alive(first) && alive(second), "the others do not notice")
	require.NoError(t, first.Close())
	require.Eventually(t, func() bool { return alive(dial(t, addr)) }, 10*time.Second, 10*time.Millisecond, "a closed one makes room")
}

func TestServer_SlowClientsAreClosedAndOthersServed(t *testing.T) {
	f := newFixture(t)
	files, err := openFiles()
	require.NoError(t, err)
	slow := connsWithin(10_000, files/2) // this process holds both ends
	if testing.Short() {
		slow = 300
	}
	_, addr := serving(t, f.api, func(c *ServerConfig) {
		c.ReadHeaderTimeout, c.ReadTimeout, c.MaxConns = 3*time.Second, 4*time.Second, slow+100
	})
	t.Logf("%d slow clients", slow)
	token := f.token(1, auth.User)
	head := "POST /v1/like HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer " + token + "\r\n"
	kinds := []string{
		"",                                    // connects and says nothing
		"POST /v1/like HTTP/1.1\r\nHost: x\r", // breaks off inside the headers
		head + "Content-Length: 34\r\n\r\n{\"item",             // breaks off inside the body
		head + "Transfer-Encoding: chunked\r\n\r\n22\r\n{\"it", // the same, chunked
	}
	conns := make([]net.Conn, slow)
	for i := range conns {
		conns[i] = dial(t, addr)
		_, err := io.WriteString(conns[i], kinds[i%len(kinds)])
		require.NoError(t, err)
	}
	client := httpClient(t)
	for i := range 50 { // others are served meanwhile
		req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+addr+"/v1/like", strings.NewReader(fmt.Sprintf(`{"item_id":"%d","item_type":"post"}`, i+10)))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := client.Do(req)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, 200, resp.StatusCode)
	}
	for i, c := range conns { // and the slow ones lose their connections
		got := closedBy(t, c)
		if i%len(kinds) >= 2 {
			require.Contains(t, got, "408 Request Timeout")
			require.Contains(t, got, "body_timeout")
		}
		require.NoError(t, c.Close())
	}
	require.Zero(t, f.counted())
}

func TestServer_HeadersHaveAShorterTimeThanBodies(t *testing.T) {
	_, addr := serving(t, newFixture(t).api, func(c *ServerConfig) {
		c.ReadHeaderTimeout, c.ReadTimeout, c.WriteTimeout = 50*time.Millisecond, time.Minute, 2*time.Minute
	})
	c := dial(t, addr)
	require.NoError(t, c.SetDeadline(time.Now().Add(10*time.Second)))
	_, err := io.WriteString(c, "POST /v1/like HTTP/1.1\r\nHost: x\r\n")
	require.NoError(t, err)
	closedBy(t, c)
}

func TestServer_LargeBodiesAreRefusedAndTheConnectionClosed(t *testing.T) {
	f := newFixture(t)
	_, addr := serving(t, f.api, func(*ServerConfig) {})
	for name, framing := range map[string]string{
		"announced": fmt.Sprintf("Content-Length: %d\r\n\r\n", 50<<20),
		"chunked":   "Transfer-Encoding: chunked\r\n\r\n",
	} {
		c := dial(t, addr)
		_, err := io.WriteString(c, "POST /v1/counts HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"+framing)
		require.NoError(t, err)
		sent := make(chan int64, 1)
		go func() { // 50 MB, or what the server lets in
			var n int64
			defer func() { sent <- n }()
			piece := strings.Repeat(" ", 64<<10)
			for n < 50<<20 {
				data := piece
				if name == "chunked" {
					data = fmt.Sprintf("%x\r\n%s\r\n", len(piece), piece)
				}
				m, err := io.WriteString(c, data)
				if n += int64(m); err != nil {
					return
				}
			}
		}()
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err, name)
		require.Equal(t, 413, resp.StatusCode, name)
		require.True(t, resp.Close, name)
		require.NoError(t, resp.Body.Close())
		require.NoError(t, c.Close())
		require.Less(t, <-sent, int64(50<<20), name)
	}
}

func TestServer_HugeHeadersAreA4xx(t *testing.T) {
	_, addr := serving(t, newFixture(t).api, func(*ServerConfig) {})
	c := dial(t, addr)
	_, err := io.WriteString(c, "GET /v1/counts?item_type=post&item_ids="+strings.Repeat("1,", 20_000)+"1 HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	require.Contains(t, closedBy(t, c), "431")
}

func TestServer_ShutdownLetsRequestsInFlightFinish(t *testing.T) {
	began, release := make(chan struct{}), make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(began)
		<-release
		_, _ = io.WriteString(w, "done")
	})
	s, addr := serving(t, h, func(*ServerConfig) {})
	got := make(chan string, 1)
	client := httpClient(t)
	go func() {
		resp, err := client.Get("http://" + addr)
		if err != nil {
			got <- err.Error()
			return
		}
		defer func() { _ = resp.Body.Close() }()
		b, _ := io.ReadAll(resp.Body)
		got <- string(b)
	}()
	<-began
	stopped := make(chan error, 1)
	go func() { stopped <- s.Shutdown(t.Context()) }()
	require.Eventually(t, func() bool { // nobody new gets in
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	}, 10*time.Second, time.Millisecond)
	select {
	case err := <-stopped:
		t.Fatalf("shutdown ended before the request: %v", err)
	default:
	}
	close(release)
	require.Equal(t, "done", <-got)
	require.NoError(t, <-stopped)
}

func TestServer_ShutdownCutsOffWhatOutlastsItsContext(t *testing.T) {
	began, release := make(chan struct{}), make(chan struct{})
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
		close(release)
	})
	s, addr := serving(t, h, func(*ServerConfig) {})
	failed := make(chan error, 1)
	client := httpClient(t)
	go func() {
		resp, err := client.Get("http://" + addr)
		if err == nil {
			_ = resp.Body.Close()
		}
		failed <- err
	}()
	<-began
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorContains(t, s.Shutdown(ctx), "cut off")
	require.Error(t, <-failed)
	<-release
}

func TestServer_KeepsServingUnderManyConnections(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.Service = as[*asked](t, c.Service).Service })
	_, addr := serving(t, f.api, func(*ServerConfig) {})
	var wg sync.WaitGroup
	var good atomic.Int64
	const users = 200
	for user := likes.UserID(1); user <= users; user++ {
		token := f.token(user, auth.User)
		wg.Go(func() { // a new connection each
			c, err := net.Dial("tcp", addr)
			if err != nil {
				return
			}
			defer func() { _ = c.Close() }()
			_, err = fmt.Fprintf(c, "POST /v1/like HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", token, len(goodLike), goodLike)
			if err != nil {
				return
			}
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				return
			}
			_ = resp.Body.Close()
			if resp.StatusCode == 200 {
				good.Add(1)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, users, good.Load())
	require.EqualValues(t, users, f.counted())
}
