package tiertest

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/auth"
	"likectl/pkg/httpapi"
	"likectl/pkg/likes"
	"likectl/pkg/memory"
	"likectl/pkg/version"
)

// apiOver returns the API over a service, and its authority.
func apiOver(t *testing.T, s likes.Service) (http.Handler, *auth.Authority) {
	t.Helper()
	secret := make([]byte, auth.SecretSize)
	authority, err := auth.New(auth.Default(secret))
	require.NoError(t, err)
	versions, err := version.New(secret)
	require.NoError(t, err)
	log := slog.New(slog.DiscardHandler)
	api, err := httpapi.New(httpapi.Config{
		Service: s, Auth: authority, Versions: versions, Types: likes.DefaultItemTypes(),
		Health: httpapi.NewHealth(log), Limits: httpapi.DefaultLimits(), Logger: log,
	})
	require.NoError(t, err)
	return api, authority
}

// httpFailures runs the cases over HTTP, all or only some, and returns the numbers of
// those that fail.
func httpFailures(t *testing.T, h http.Handler, authority *auth.Authority, only ...int) []int {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	mint := func(u likes.UserID, scope auth.Scope) string {
		token, err := authority.Mint(u, scope, time.Hour)
		require.NoError(t, err)
		return token
	}
	user := func(u likes.UserID) string { return mint(u, auth.User) }
	w := &web{
		HTTPTarget: HTTPTarget{BaseURLs: []string{server.URL}, ServiceToken: mint(1, auth.Service)},
		http:       newHTTPClient(), tokens: tokens{make: user},
	}
	t.Cleanup(w.http.CloseIdleConnections)
	w.item.Store(1_000_000)
	var failed []int
	for _, k := range httpCases() {
		if len(only) > 0 && !slices.Contains(only, k.number) {
			continue
		}
		watch := &watched{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			k.web(&webCase{T: watch, web: w})
		}()
		<-done
		if len(watch.log) > 0 {
			failed = append(failed, k.number)
		}
	}
	return failed
}

// TestPlantedHTTPBugsAreCaught breaks the API between wire and handler.
func TestPlantedHTTPBugsAreCaught(t *testing.T) {
	var calls atomic.Int64
	tests := []struct {
		name   string
		number int
		wrap   func(next http.Handler, w http.ResponseWriter, r *http.Request, body string)
	}{
		{"a GET likes", 19, func(next http.Handler, w http.ResponseWriter, r *http.Request, body string) {
			if r.Method == http.MethodGet && r.URL.Path == "/v1/like" {
				body = fmt.Sprintf(`{"item_id":%q,"item_type":"post"}`, r.URL.Query().Get("item_id"))
				r.Method, r.URL.RawQuery = http.MethodPost, ""
			}
			forward(next, w, r, body)
		}},
		{"ids go through a float64", 97, func(next http.Handler, w http.ResponseWriter, r *http.Request, body string) {
			forward(next, w, r, regexp.MustCompile(`"\d{16,19}"`).ReplaceAllStringFunc(body, func(id string) string {
				f, _ := strconv.ParseFloat(id[1:len(id)-1], 64)
				return fmt.Sprintf(`"%.0f"`, min(f, 9.223372036854774e18))
			}))
		}},
		{"a batch over the maximum is cut", 102, func(next http.Handler, w http.ResponseWriter, r *http.Request, body string) {
			var in struct {
				Items []json.RawMessage `json:"items"`
			}
			if r.URL.Path == "/v1/counts" && json.Unmarshal([]byte(body), &in) == nil && len(in.Items) > likes.MaxRead {
				in.Items = in.Items[:likes.MaxRead]
				cut, _ := json.Marshal(in)
				body = string(cut)
			}
			forward(next, w, r, body)
		}},
		{"a conflict now and then is a 500", 14, func(next http.Handler, w http.ResponseWriter, r *http.Request, body string) {
			if r.URL.Path == "/v1/like" && calls.Add(1)%20 == 0 {
				http.Error(w, `{"error":"conflict"}`, http.StatusInternalServerError)
				return
			}
			forward(next, w, r, body)
		}},
		{"a malformed entry is left out", 106, func(next http.Handler, w http.ResponseWriter, r *http.Request, body string) {
			forward(next, w, r, strings.Replace(body, `,{"item_id":"x7","item_type":"post"}`, "", 1))
		}},
		{"the count of before is answered", 45, func(next http.Handler, w http.ResponseWriter, r *http.Request, body string) {
			rec := httptest.NewRecorder()
			forward(next, rec, r, body)
			out := rec.Body.String()
			if r.Method == http.MethodPost && r.URL.Path == "/v1/like" {
				out = regexp.MustCompile(`"count":\d+`).ReplaceAllStringFunc(out, func(m string) string {
					n, _ := strconv.Atoi(m[len(`"count":`):])
					return fmt.Sprintf(`"count":%d`, n-1)
				})
			}
			for k, v := range rec.Header() {
				w.Header()[k] = v
			}
			w.WriteHeader(rec.Code)
			_, _ = io.WriteString(w, out)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			api, authority := apiOver(t, memory.New())
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					http.Error(w, "", http.StatusBadRequest)
					return
				}
				tt.wrap(api, w, r, string(body))
			})
			require.Contains(t, httpFailures(t, h, authority, tt.number), tt.number)
		})
	}
}

func forward(next http.Handler, w http.ResponseWriter, r *http.Request, body string) {
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	next.ServeHTTP(w, r)
}
