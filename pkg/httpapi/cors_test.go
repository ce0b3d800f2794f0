package httpapi

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/auth"
	"likectl/pkg/likes"
)

const page = "https://app.example.com"

func withOrigins(origins ...string) func(*Config) {
	return func(c *Config) { c.CORS = CORS{Origins: origins, MaxAge: time.Hour} }
}

// preflight asks as a browser does before it sends what a page wants to send.
func preflight(f *fixture, origin, method, path, headers string) *httptest.ResponseRecorder {
	req := f.request(http.MethodOptions, path, "", "", "Origin", origin, "Access-Control-Request-Method", method)
	if headers != "" {
		req.Header.Set("Access-Control-Request-Headers", headers)
	}
	rec := httptest.NewRecorder()
	f.api.ServeHTTP(rec, req)
	return rec
}

func accessControl(h http.Header) (names []string) {
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			names = append(names, name)
		}
	}
	return names
}

func TestCORS_IsOffUnlessConfigured(t *testing.T) {
	f := newFixture(t)
	rec := preflight(f, page, "POST", "/v1/like", "authorization")
	require.Equal(t, http.StatusMethodNotAllowed, rec.Code)
	require.Empty(t, accessControl(rec.Header()))
	a := f.do(f.request("GET", "/v1/count?item_id=1&item_type=post", "", "", "Origin", page))
	require.Empty(t, accessControl(a.header))
	require.NotContains(t, a.header.Get("Vary"), "Origin")
}

func TestCORS_PreflightAllowsWhatEveryRouteTakes(t *testing.T) {
	f := newFixture(t, withOrigins(page), func(c *Config) { c.Rates.IP = limiter(t, "ip", 1) })
	sent := "authorization,content-type,if-none-match,like-min-version,like-version,x-request-id"
	for name := range operations(spec()) {
		method, path, _ := strings.Cut(name, " ")
		rec := preflight(f, page, method, path, sent)
		require.Equal(t, http.StatusNoContent, rec.Code, name)
		require.Equal(t, page, rec.Header().Get("Access-Control-Allow-Origin"), name)
		require.Equal(t, method, rec.Header().Get("Access-Control-Allow-Methods"), name)
		require.Equal(t, sent, rec.Header().Get("Access-Control-Allow-Headers"), name)
		require.Equal(t, "3600", rec.Header().Get("Access-Control-Max-Age"), name)
		require.Empty(t, rec.Header().Get("Access-Control-Allow-Credentials"), name)
		require.Contains(t, rec.Header().Get("Vary"), "Origin", name)
	}
	require.Zero(t, f.service.calls)
	// None of them took the only request that the address has.
	require.Equal(t, 200, f.do(f.request("GET", "/v1/count?item_id=1&item_type=post", "", "")).status)
	require.Equal(t, 429, f.do(f.request("GET", "/v1/count?item_id=1&item_type=post", "", "")).status)
}

// A page has to be able to send the header by which its device is limited.
func TestCORS_PreflightAllowsTheHeaderThatNamesTheDevice(t *testing.T) {
	f := newFixture(t, withOrigins(page), func(c *Config) { c.DeviceHeader = "x-device-id" })
	rec := preflight(f, page, "POST", "/v1/like", "authorization,content-type,x-device-id")
	require.Equal(t, "authorization,content-type,x-device-id", rec.Header().Get("Access-Control-Allow-Headers"))
	require.Empty(t, accessControl(preflight(f, page, "POST", "/v1/like", "like-device").Header()))
}

func TestCORS_PreflightAllowsNothingElse(t *testing.T) {
	f := newFixture(t, withOrigins(page))
	for _, c := range [][3]string{
		{"https://evil.example", "POST", "authorization"},
		{"https://app.example.com.evil.example", "POST", ""},
		{"https://evil-app.example.com", "POST", ""},
		{"http://app.example.com", "POST", ""},
		{"https://app.example.com:8443", "POST", ""},
		{"null", "POST", ""},
		{"*", "POST", ""},
		{page, "PATCH", ""},
		{page, "POST", "authorization,x-evil"},
	} {
		rec := preflight(f, c[0], c[1], "/v1/like", c[2])
		require.Empty(t, accessControl(rec.Header()), "%v", c)
	}
	require.Zero(t, f.service.calls)
}

func TestCORS_AnswersAreReadableByAllowedPagesOnly(t *testing.T) {
	f := newFixture(t, withOrigins(page))
	user := f.token(1, auth.User)
	for _, origin := range []string{page, "https://evil.example", ""} {
		for _, a := range []answer{
			f.do(f.request("POST", "/v1/like", goodLike, user, "Origin", origin)),
			f.do(f.request("GET", "/v1/count?item_id=1&item_type=post", "", "", "Origin", origin)),
			f.do(f.request("POST", "/v1/like", goodLike, "bad", "Origin", origin)), // errors, too
			f.do(f.request("GET", "/nowhere", "", "", "Origin", origin)),
		} {
			// A shared cache must not give one page's answer to another.
			require.Contains(t, strings.Split(a.header.Get("Vary"), ", "), "Origin")
			if origin != page {
				require.Empty(t, accessControl(a.header))
				continue
			}
			require.Equal(t, page, a.header.Get("Access-Control-Allow-Origin"))
			require.Empty(t, a.header.Get("Access-Control-Allow-Credentials"))
			exposed := strings.Split(strings.ToLower(a.header.Get("Access-Control-Expose-Headers")), ", ")
			for _, name := range []string{"like-version", "ratelimit", "ratelimit-policy", "retry-after", "x-request-id", "etag", "x-stale-data"} {
				require.True(t, slices.Contains(exposed, name), name)
			}
		}
	}
	count := f.do(f.request("GET", "/v1/count?item_id=1&item_type=post", "", "", "Origin", page))
	require.Equal(t, []string{"Origin, Authorization, Like-Min-Version"}, count.header["Vary"])
	head := httptest.NewRecorder()
	f.api.ServeHTTP(head, f.request("HEAD", "/v1/count?item_id=1&item_type=post", "", "", "Origin", page))
	require.Equal(t, page, head.Header().Get("Access-Control-Allow-Origin"))
}

func TestCORS_StarAllowsEveryPageWithoutCredentials(t *testing.T) {
	f := newFixture(t, withOrigins("*"))
	rec := preflight(f, "https://any.example", "DELETE", "/v1/like", "authorization")
	require.Equal(t, "*", rec.Header().Get("Access-Control-Allow-Origin"))
	require.Empty(t, rec.Header().Get("Access-Control-Allow-Credentials"))
	a := f.do(f.request("POST", "/v1/like", goodLike, f.token(1, auth.User), "Origin", "https://any.example"))
	require.Equal(t, "*", a.header.Get("Access-Control-Allow-Origin"))
	require.Empty(t, a.header.Get("Access-Control-Allow-Credentials"))
}

func TestCORS_RefusesOriginsThatNoBrowserSends(t *testing.T) {
	for _, bad := range []string{
		"", "null", "app.example.com", "https://", "https://app.example.com/", "https://app.example.com/x", "https://*.example.com",
		"https://App.example.com", "HTTPS://app.example.com", "https://u@app.example.com", "https://app.example.com:443", "http://a.example:80",
		"https://a.example?x", "https://a.example#x", "https://a.example, https://b.example", "https://a.example:", "//a.example", "https:a.example",
	} {
		require.ErrorIs(t, CORS{Origins: []string{page, bad}, MaxAge: time.Hour}.Check(), likes.ErrInvalid, bad)
	}
	for _, good := range []string{page, "http://localhost:3000", "http://127.0.0.1:8000", "http://[::1]:8080", "capacitor://localhost"} {
		require.NoError(t, CORS{Origins: []string{good}, MaxAge: time.Hour}.Check(), good)
	}
	require.ErrorIs(t, CORS{Origins: []string{"*", page}, MaxAge: time.Hour}.Check(), likes.ErrInvalid)
	for _, age := range []time.Duration{0, -1, time.Millisecond, 25 * time.Hour} {
		require.ErrorIs(t, CORS{Origins: []string{page}, MaxAge: age}.Check(), likes.ErrInvalid)
	}
	f := newFixture(t)
	cfg := f.api.cfg
	cfg.CORS = CORS{Origins: []string{"null"}, MaxAge: time.Hour}
	_, err := New(cfg)
	require.ErrorIs(t, err, likes.ErrInvalid)
}
