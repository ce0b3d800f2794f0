package load

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// get asks for / and wants 200.
type get struct{ kind Kind }

const request = "GET / HTTP/1.1\r\nHost: test\r\n\r\n"

func (g get) Next(b []byte) ([]byte, Kind) { return append(b, request...), g.kind }

func (g get) Answered(_ Kind, status int, body []byte) string {
	if status != http.StatusOK || string(body) != "ok" {
		return "unexpected"
	}
	return ""
}

// serve starts a server and returns its address.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }

func config(address string, rate float64, connections int, d time.Duration) Config {
	return Config{
		Network: "tcp", Address: address, Connections: connections, Rate: rate, Duration: d, Timeout: 5 * time.Second,
		Kinds: 1, Source: func(int) Source { return get{} },
	}
}

// stalling answers after delay, and stands still for all once, at a time, for a
// while.
func stalling(delay, at, stall time.Duration) http.HandlerFunc {
	start := time.Now()
	return func(w http.ResponseWriter, r *http.Request) {
		wait := delay
		if now := time.Since(start); now >= at && now < at+stall {
			wait += at + stall - now
		}
		<-time.After(wait)
		ok(w, r)
	}
}

// At 500 a second, a stall of 500 ms within 4 s meets one request in eight: those
// that were due in it wait from 500 ms down to nothing, and those behind it until
// the 250 that wait are answered too. So the whole run's quantile 95 is some 300 ms
// at least, its 99 some 460 ms. A closed loop with the same connections has 4
// requests in the stall, one in six hundred.
func TestAStallIsChargedToAllWhoCameInIt(t *testing.T) {
	const delay, at, stall = 5 * time.Millisecond, 2 * time.Second, 500 * time.Millisecond
	open := config(serve(t, stalling(delay, at, stall)), 500, 4, 4*time.Second)
	got, err := Run(t.Context(), open)
	require.NoError(t, err)
	h := got.Kinds[0].Latency
	t.Logf("open loop: P50 %v P90 %v P95 %v P99 %v max %v", quantile(h, 50), quantile(h, 90), quantile(h, 95), quantile(h, 99), quantile(h, 100))
	require.Equal(t, got.Due, got.Kinds[0].OK)
	require.InDelta(t, 2000, got.Due, 2)
	require.GreaterOrEqual(t, quantile(h, 50), delay)
	require.Less(t, quantile(h, 50), 60*time.Millisecond)
	require.Greater(t, quantile(h, 95), 200*time.Millisecond)
	require.Greater(t, quantile(h, 99), 400*time.Millisecond)
	require.InDelta(t, 505, quantile(h, 100).Milliseconds(), 60)

	closed := config(serve(t, stalling(delay, at, stall)), 0, 4, 4*time.Second)
	got, err = Run(t.Context(), closed)
	require.NoError(t, err)
	h = got.Kinds[0].Latency
	t.Logf("closed loop: P50 %v P95 %v P99 %v of %d", quantile(h, 50), quantile(h, 95), quantile(h, 99), got.Kinds[0].OK)
	require.Less(t, quantile(h, 99), 200*time.Millisecond, "a closed loop sees the stall now: this test compares nothing")
}

func TestErrorsAreApartFromLatency(t *testing.T) {
	var n atomic.Int64
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch n.Add(1) % 4 {
		case 0:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 1:
			panic(http.ErrAbortHandler)
		default:
			ok(w, r)
		}
	})
	got, err := Run(t.Context(), config(address, 400, 2, time.Second))
	require.NoError(t, err)
	s := got.Kinds[0]
	require.Equal(t, got.Due, s.Sent)
	require.Equal(t, s.Sent, s.OK+s.Errors["503 unexpected"]+s.Errors["connection"])
	require.InDelta(t, s.Sent/4, s.Errors["503 unexpected"], 2)
	require.InDelta(t, s.Sent/4, s.Errors["connection"], 2)
	require.Equal(t, s.OK, s.Latency.TotalCount())
	require.Zero(t, got.Unsent)
}

func TestWarmupIsNotRecorded(t *testing.T) {
	cfg := config(serve(t, ok), 1000, 2, 500*time.Millisecond)
	cfg.Warmup = 500 * time.Millisecond
	got, err := Run(t.Context(), cfg)
	require.NoError(t, err)
	require.InDelta(t, 500, got.Due, 2)
	require.Equal(t, got.Due, got.Kinds[0].Sent)
}

func TestSchedule(t *testing.T) {
	s := schedule{rate: 100, burst: Burst{Factor: 10, Every: time.Second, Length: 100 * time.Millisecond}}
	perTenth := map[int]int{}
	for at := s.next(); at < 2*time.Second; at = s.next() {
		perTenth[int(at/(100*time.Millisecond))]++
	}
	require.InDelta(t, 10, perTenth[5], 1)
	require.InDelta(t, 100, perTenth[10], 2, "the burst")
	require.InDelta(t, 10, perTenth[12], 1)
}

func TestAnswersThatAreNoAnswers(t *testing.T) {
	for raw, want := range map[string]string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok":                            "",
		"HTTP/1.1 204 No Content\r\n\r\n":                                           "",
		"HTTP/1.1 200 OK\r\ncontent-length:2\r\nConnection: close\r\n\r\nok":        "",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokok":                          "behind the answer",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n": "Content-Length",
		"HTTP/1.1 2x0 OK\r\nContent-Length: 2\r\n\r\nok":                            "HTTP/1.1",
		"SSH-2.0-x\r\n\r\n": "HTTP/1.1",
		"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n": "Content-Length",
		"HTTP/1.1 200 OK\r\nContent-Length: 9":                            "receive",
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		done := make(chan struct{})
		go func() {
			defer close(done)
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1000))
			_, _ = c.Write([]byte(raw))
			_ = c.Close()
		}()
		c := &conn{network: "tcp", addr: l.Addr().String(), timeout: 2 * time.Second}
		_, _, err = c.do(t.Context(), []byte(request))
		if want == "" {
			require.NoError(t, err, raw)
			require.Equal(t, strings.Contains(raw, "close"), c.c == nil, raw)
		} else {
			require.ErrorContains(t, err, want, raw)
			require.Nil(t, c.c, raw)
		}
		c.close()
		<-done
		require.NoError(t, l.Close())
	}
}

func TestValidate(t *testing.T) {
	for i, change := range []func(*Config){
		func(c *Config) { c.Connections = 0 },
		func(c *Config) { c.Rate = -1 },
		func(c *Config) { c.Duration = 0 },
		func(c *Config) { c.Timeout = 0 },
		func(c *Config) { c.Burst = Burst{Factor: 0.5, Every: 1, Length: 1} },
		func(c *Config) { c.Burst = Burst{Factor: 2, Every: 1, Length: 2} },
	} {
		cfg := config("127.0.0.1:1", 1, 1, time.Second)
		require.NoError(t, cfg.Validate())
		change(&cfg)
		_, err := Run(t.Context(), cfg)
		require.Error(t, err, fmt.Sprint(i))
	}
}
