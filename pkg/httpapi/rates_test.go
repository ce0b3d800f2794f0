package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/auth"
	"likectl/pkg/likes"
	"likectl/pkg/limit"
)

func limiter(tb testing.TB, name string, n int) *limit.Limiter {
	tb.Helper()
	l, err := limit.New(name, 1000, limit.Limit{Max: n, Window: time.Minute})
	require.NoError(tb, err)
	return l
}

// limited returns the API with n calls a minute in every bucket of users, a
// thousand in those of requests.
func limited(tb testing.TB, n int, change ...func(*Rates)) (f *fixture, refused map[string]int) {
	tb.Helper()
	refused = map[string]int{}
	f = newFixture(tb, func(c *Config) {
		c.Rates = Rates{
			IP: limiter(tb, "ip", 1000), Like: limiter(tb, "like", n), Unlike: limiter(tb, "unlike", n),
			Save: limiter(tb, "save", n), Unsave: limiter(tb, "unsave", n), View: limiter(tb, "view", n), Share: limiter(tb, "share", n),
			Refused: func(bucket string) { refused[bucket]++ },
		}
		for _, ch := range change {
			ch(&c.Rates)
		}
	})
	return f, refused
}

// refusedBy requires a well-formed 429 of a bucket.
func refusedBy(tb testing.TB, a answer, bucket string) (retry int64) {
	tb.Helper()
	require.Equal(tb, http.StatusTooManyRequests, a.status, a.raw)
	require.Equal(tb, "rate_limited", a.body["error"])
	require.Contains(tb, a.body["detail"], "the limit "+bucket+" ")
	retry = number(tb, a.body["retry_after"])
	require.Equal(tb, strconv.FormatInt(retry, 10), a.header.Get("Retry-After"))
	require.Contains(tb, a.header.Get("RateLimit-Policy"), `"`+bucket+`-60";q=`)
	require.Contains(tb, a.header.Get("RateLimit"), fmt.Sprintf(`"%s-60";r=0;t=%d`, bucket, retry))
	return retry
}

// item returns the body about a post.
func item(i int) string { return fmt.Sprintf(`{"item_id":"%d","item_type":"post"}`, i) }

func TestRates_EveryMutationHasItsBucket(t *testing.T) {
	const n = 3
	for _, r := range []struct{ method, path, bucket string }{
		{"POST", "/v1/like", "like"},
		{"DELETE", "/v1/like", "unlike"},
		{"POST", "/v1/save", "save"},
		{"DELETE", "/v1/save", "unsave"},
		{"POST", "/v1/view", "view"},
		{"POST", "/v1/share", "share"},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, refused := limited(t, n)
			mine := f.token(1, auth.User)
			for i := range n {
				a := f.do(f.request(r.method, r.path, item(i+1), mine))
				require.Equal(t, 200, a.status, a.raw)
				require.Equal(t, fmt.Sprintf(`"ip-60";q=1000;w=60, "%s-60";q=%d;w=60`, r.bucket, n), a.header.Get("RateLimit-Policy"))
				require.Equal(t, fmt.Sprintf(`"ip-60";r=%d;t=1, "%s-60";r=%d;t=%d`, 999-i, r.bucket, n-1-i, 20*(i+1)), a.header.Get("RateLimit"))
			}
			asked := f.service.calls
			for i := range 5 {
				retry := refusedBy(t, f.do(f.request(r.method, r.path, item(100+i), mine)), r.bucket)
				require.EqualValues(t, 60/n, retry)
			}
			require.Equal(t, asked, f.service.calls, "a refused call reached the service")
			require.Equal(t, map[string]int{r.bucket: 5}, refused)
			require.Equal(t, 200, f.do(f.request(r.method, r.path, item(1), f.token(2, auth.User))).status, "another user is not concerned")
			time.Sleep(60/n*time.Second - 1)
			refusedBy(t, f.do(f.request(r.method, r.path, item(1), mine)), r.bucket)
			time.Sleep(time.Nanosecond)
			require.Equal(t, 200, f.do(f.request(r.method, r.path, item(1), mine)).status, "Retry-After is not true")
			refusedBy(t, f.do(f.request(r.method, r.path, item(1), mine)), r.bucket)
		})
	}
}

func TestRates_ALikeCanAlwaysBeTakenBack(t *testing.T) {
	f, _ := limited(t, 2)
	mine := f.token(1, auth.User)
	f.like("POST", 1, "1")
	f.like("POST", 1, "1") // changes nothing, and costs one: only the store knows
	refusedBy(t, f.do(f.request("POST", "/v1/like", goodLike, mine)), "like")
	require.EqualValues(t, 1, f.counted())
	f.like("DELETE", 1, "1")
	require.Zero(t, f.counted())
	refusedBy(t, f.do(f.request("POST", "/v1/like", goodLike, mine)), "like")
	require.Zero(t, f.counted(), "a refused like was applied")
}

func TestRates_MalformedCallsCostTheirUserNothing(t *testing.T) {
	f, _ := limited(t, 1)
	mine := f.token(1, auth.User)
	for _, body := range []string{"{", `{"item_id":"0","item_type":"post"}`, `{"item_id":"1","item_type":"post","user_id":"2"}`, ""} {
		require.Equal(t, 400, f.do(f.request("POST", "/v1/like", body, mine)).status)
	}
	f.like("POST", 1, "1")
}

func TestRates_ServicesAreLimitedBySubjectOnly(t *testing.T) {
	f, refused := limited(t, 1, func(r *Rates) { r.IP = limiter(t, "ip", 1) })
	call := func(subject likes.UserID) answer {
		return f.do(f.request("POST", "/v1/like", `{"user_id":"7","item_id":"1","item_type":"post"}`, f.token(subject, auth.Service)))
	}
	batch := `{"ops":[{"user_id":"7","item_id":"1","item_type":"post","action":"like"},{"user_id":"7","item_id":"2","item_type":"post","action":"like"}]}`
	for range 20 {
		a := call(3)
		require.Equal(t, 200, a.status, a.raw)
		require.Empty(t, a.header.Get("RateLimit"))
		require.Equal(t, 200, f.do(f.request("POST", "/v1/likes:batch", batch, f.token(3, auth.Service))).status)
	}
	require.Empty(t, refused)

	f, refused = limited(t, 1, func(r *Rates) { r.Service = limiter(t, "service", 2) })
	require.Equal(t, 200, call(3).status)
	require.Equal(t, 200, f.do(f.request("POST", "/v1/likes:batch", batch, f.token(3, auth.Service))).status)
	asked := f.service.calls
	refusedBy(t, call(3), "service")
	refusedBy(t, f.do(f.request("POST", "/v1/likes:batch", batch, f.token(3, auth.Service))), "service")
	require.Equal(t, asked, f.service.calls)
	require.Equal(t, 200, call(4).status, "another service is not concerned")
	require.Equal(t, map[string]int{"service": 2}, refused)
}

// unread is a body that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body of a refused request was read")
	return 0, io.EOF
}

func TestRates_AnAddressIsLimitedBeforeItsBodyIsRead(t *testing.T) {
	f, refused := limited(t, 100, func(r *Rates) { r.IP = limiter(t, "ip", 4) })
	from := func(method, target, body, token, addr string) answer {
		r := f.request(method, target, body, token)
		r.RemoteAddr = addr
		return f.do(r)
	}
	const count = "/v1/count?item_id=1&item_type=post"
	for addr, path := range map[string]string{"192.0.2.9:1": count, "192.0.2.10:1": "/openapi.json"} {
		a := from("GET", path, "", "", addr)
		require.Equal(t, 200, a.status)
		require.Empty(t, a.header.Get("RateLimit"), "shared caches would tell it to others")
		require.Empty(t, a.header.Get("RateLimit-Policy"))
	}
	require.Equal(t, 200, from("POST", "/v1/like", item(1), f.token(1, auth.User), "192.0.2.9:2").status)
	require.Equal(t, 401, from("POST", "/v1/like", item(1), "bad", "192.0.2.9:3").status)
	require.Equal(t, 404, from("GET", "/nowhere", "", "", "192.0.2.9:4").status)
	asked := f.service.calls
	for _, r := range []struct{ method, target, token string }{
		{"GET", count, ""},
		{"POST", "/v1/like", f.token(2, auth.User)},
		{"POST", "/v1/like", "bad"},
		{"POST", "/v1/likes:batch", f.token(2, auth.User)},
		{"POST", "/v1/counts", ""},
		{"GET", "/nowhere", ""},
		{"PUT", "/v1/like", ""},
	} {
		req := f.request(r.method, r.target, "x", r.token)
		req.Body, req.RemoteAddr = io.NopCloser(unread{t}), "192.0.2.9:5"
		refusedBy(t, f.do(req), "ip")
	}
	require.Equal(t, asked, f.service.calls)
	require.Equal(t, map[string]int{"ip": 7}, refused)
	require.Equal(t, 200, from("GET", count, "", "", "192.0.2.10:1").status, "another address is not concerned")
	require.Equal(t, 200, from("POST", "/v1/like", `{"user_id":"7","item_id":"1","item_type":"post"}`, f.token(1, auth.Service), "192.0.2.9:5").status)
	for _, health := range []string{"/healthz", "/readyz"} {
		rec := httptest.NewRecorder()
		req := f.request("GET", health, "", "")
		req.RemoteAddr = "192.0.2.9:5"
		f.api.ServeHTTP(rec, req)
		require.Equal(t, 200, rec.Code, "health is never limited")
	}
}

func TestRates_ViewsWithoutATokenAreLimitedByAddress(t *testing.T) {
	f, _ := limited(t, 1)
	view := func(addr, token string) answer {
		r := f.request("POST", "/v1/view", item(1), token)
		r.RemoteAddr = addr
		return f.do(r)
	}
	require.Equal(t, 200, view("192.0.2.1:1", "").status)
	refusedBy(t, view("192.0.2.1:2", ""), "view")
	require.Equal(t, 200, view("192.0.2.2:2", "").status)
	require.Equal(t, 200, view("192.0.2.1:3", f.token(1, auth.User)).status)
}

func TestRates_TheClientIsWhoTheTrustedProxiesSay(t *testing.T) {
	f, _ := limited(t, 1, func(r *Rates) {
		r.Proxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}
	})
	for _, c := range []struct {
		peer      string
		forwarded []string
		want      string
	}{
		{"192.0.2.1:5", nil, "192.0.2.1"},
		{"192.0.2.1:5", []string{"198.51.100.7"}, "192.0.2.1"},
		{"10.0.0.1:5", nil, "10.0.0.1"},
		{"10.0.0.1:5", []string{"198.51.100.7"}, "198.51.100.7"},
		{"10.0.0.1:5", []string{"203.0.113.1, 198.51.100.7"}, "198.51.100.7"}, // the client wrote the first one
		{"10.0.0.1:5", []string{"198.51.100.7, 10.2.2.2"}, "198.51.100.7"},
		{"10.0.0.1:5", []string{"203.0.113.1", "198.51.100.7,10.2.2.2 ,\t10.3.3.3"}, "198.51.100.7"},
		{"10.0.0.1:5", []string{"203.0.113.1, rubbish, 10.2.2.2"}, "10.2.2.2"},
		{"10.0.0.1:5", []string{"198.51.100.7,"}, "10.0.0.1"},
		{"10.0.0.1:5", []string{""}, "10.0.0.1"},
		{"10.0.0.1:5", []string{"10.9.9.9, 10.2.2.2"}, "10.9.9.9"},
		{"10.0.0.1:5", []string{"198.51.100.7:4711"}, "198.51.100.7"},
		{"10.0.0.1:5", []string{"[2606:4700::1]:4711"}, "2606:4700::1"},
		{"[::ffff:10.0.0.1]:5", []string{"::ffff:198.51.100.7"}, "198.51.100.7"},
		{"[2001:db8::1]:5", []string{"198.51.100.7"}, "198.51.100.7"},
		{"[fe80::1%eth0]:5", nil, "fe80::1"},
		{"@", nil, "invalid IP"},
		{"", []string{"198.51.100.7"}, "invalid IP"},
	} {
		r := f.request("GET", "/v1/count", "", "")
		r.RemoteAddr = c.peer
		r.Header["X-Forwarded-For"] = c.forwarded
		require.Equal(t, c.want, (&call{api: f.api, r: r}).client().String(), "%v", c)
	}
	require.Equal(t, addrKey(netip.MustParseAddr("2001:db8::1")), addrKey(netip.MustParseAddr("2001:db8::ffff:2")))
	require.NotEqual(t, addrKey(netip.MustParseAddr("2001:db8::1")), addrKey(netip.MustParseAddr("2001:db8:0:1::1")))
	require.NotEqual(t, addrKey(netip.MustParseAddr("192.0.2.1")), addrKey(netip.MustParseAddr("192.0.2.2")))
}

func TestRates_AProxyThatMayBeMissingIsToldOnce(t *testing.T) {
	f, _ := limited(t, 1)
	for _, peer := range []string{"198.51.100.7:1", "10.1.1.1:1", "10.1.1.1:1"} {
		r := f.request("GET", "/v1/count?item_id=1&item_type=post", "", "", "X-Forwarded-For", "203.0.113.1")
		r.RemoteAddr = peer
		require.Equal(t, 200, f.do(r).status)
	}
	require.Equal(t, 1, strings.Count(f.log.String(), "limits.trusted_proxies"))
	require.Contains(t, f.log.String(), "peer=10.1.1.1")
	require.NotContains(t, f.log.String(), "203.0.113.1")
}

// The headers are lists of RFC 9651, as the draft wants them.
func TestRates_HeadersAreStructuredFields(t *testing.T) {
	f, _ := limited(t, 1)
	a := f.like("POST", 1, "1")
	require.Regexp(t, `^("[a-z0-9-]+";q=\d+;w=\d+(, |$))+$`, a.header.Get("RateLimit-Policy"))
	require.Regexp(t, `^("[a-z0-9-]+";r=\d+;t=\d+(, |$))+$`, a.header.Get("RateLimit"))
	plain := newFixture(t).like("POST", 1, "1")
	require.Empty(t, plain.header.Get("RateLimit"), "nothing is limited, nothing is said")
}
