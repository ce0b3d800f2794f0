package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/auth"
	"likectl/pkg/likes"
)

const goodLike = `{"item_id":"1","item_type":"post"}`

func TestLike_StatusesCountsAndRepeats(t *testing.T) {
	f := newFixture(t)
	for _, step := range []struct {
		method string
		want   string
	}{
		{"DELETE", `{"status":"not_liked","count":0,"count_formatted":"0","user_liked":false,"changed":false}`},
		{"POST", `{"status":"liked","count":1,"count_formatted":"1","user_liked":true,"changed":true}`},
		{"POST", `{"status":"already_liked","count":1,"count_formatted":"1","user_liked":true,"changed":false}`},
		{"DELETE", `{"status":"unliked","count":0,"count_formatted":"0","user_liked":false,"changed":true}`},
		{"DELETE", `{"status":"not_liked","count":0,"count_formatted":"0","user_liked":false,"changed":false}`},
	} {
		a := f.like(step.method, 42, "9007199254740993")
		require.Equal(t, step.want, a.raw)
		require.Equal(t, "private, no-store", a.header.Get("Cache-Control"))
		v, err := f.versions.Decode(a.header.Get("Like-Version"))
		require.NoError(t, err)
		require.Equal(t, likes.Edge{Counter: likes.Likes, Item: likes.Item{Type: 1, ID: 9007199254740993}, User: 42}, v.Edge)
	}
}

func TestLike_WithoutExactChangedSaysNothingAboutIt(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.Service = inexact{c.Service} })
	require.NotContains(t, f.like("POST", 1, "1").body, "changed")
}

type inexact struct{ likes.Service }

func (s inexact) Contract() likes.Contract { return likes.Contract{} }

type accepting struct{ likes.Service }

func (accepting) Apply(_ context.Context, ms []likes.Mutation) []likes.Result {
	return []likes.Result{{Outcome: likes.Accepted, Version: likes.Version{Edge: ms[0].Edge, Clock: 5, Mark: "log:7"}}}
}

func TestLike_AcceptedIs202AndHasNoCount(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.Service = accepting{c.Service} })
	a := f.do(f.request("POST", "/v1/like", goodLike, f.token(1, auth.User)))
	require.Equal(t, http.StatusAccepted, a.status)
	require.Equal(t, `{"status":"accepted","user_liked":true}`, a.raw)
	v, err := f.versions.Decode(a.header.Get("Like-Version"))
	require.NoError(t, err)
	require.EqualValues(t, "log:7", v.Mark)
}

func TestLike_TheUserIsTheTokensOrTheOneAServiceNames(t *testing.T) {
	f := newFixture(t)
	named := `{"item_id":"1","item_type":"post","user_id":"7"}`
	for _, c := range []struct {
		scope  auth.Scope
		body   string
		status int
		says   string
	}{
		{auth.User, goodLike, 200, ""},
		{auth.User, named, 400, "user_id: not allowed"},
		{auth.Service, named, 200, ""},
		{auth.Service, goodLike, 400, "user_id: missing"},
		{auth.Admin, named, 200, ""},
	} {
		a := f.do(f.request("POST", "/v1/like", c.body, f.token(42, c.scope)))
		require.Equal(t, c.status, a.status, a.raw)
		require.Contains(t, a.raw, c.says)
	}
	page, _, err := f.service.Likers(t.Context(), likes.Likes, likes.Item{Type: 1, ID: 1}, "", 10)
	require.NoError(t, err)
	require.Len(t, page, 2)
	require.EqualValues(t, 7, page[0].Edge.User)
	require.EqualValues(t, 42, page[1].Edge.User)
}

func TestLike_FiftyEqualOnesAtOnceChangeOnce(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.Service = as[*asked](t, c.Service).Service })
	for _, method := range []string{"POST", "DELETE"} {
		var mu sync.Mutex
		var wg sync.WaitGroup
		changed := 0
		for range 50 {
			wg.Go(func() {
				rec := httptest.NewRecorder()
				f.api.ServeHTTP(rec, f.request(method, "/v1/like", goodLike, f.token(42, auth.User)))
				mu.Lock()
				defer mu.Unlock()
				if strings.Contains(rec.Body.String(), `"changed":true`) {
					changed++
				}
				if rec.Code != 200 {
					t.Errorf("status %d: %s", rec.Code, rec.Body)
				}
			})
		}
		wg.Wait()
		require.Equal(t, 1, changed, method)
	}
	require.Zero(t, f.counted())
}

// requests that are refused before the service is asked anything.
func TestAPI_RefusesBadRequestsBeforeAnyStoreIsAsked(t *testing.T) {
	f := newFixture(t)
	user, svc := f.token(42, auth.User), f.token(42, auth.Service)
	ids := strings.Repeat("1,", likes.MaxRead) + "1"
	foreign := f.like("POST", 1, "1").header.Get("Like-Version")
	f.service.calls = 0
	for _, c := range []struct {
		name   string
		req    *http.Request
		status int
		says   string
	}{
		{"no token", f.request("POST", "/v1/like", goodLike, ""), 401, "unauthorized"},
		{"bad token", f.request("POST", "/v1/like", goodLike, user+"x"), 401, "token_invalid"},
		{"basic auth", f.request("POST", "/v1/like", goodLike, "", "Authorization", "Basic eDp5"), 401, "unauthorized"},
		{"two tokens", f.request("POST", "/v1/like", goodLike, user, "Authorization", "Bearer "+svc), 401, "2 Authorization headers"},
		{"no token, unlike", f.request("DELETE", "/v1/like", goodLike, ""), 401, "unauthorized"},
		{"no token, has_liked", f.request("GET", "/v1/has_liked?item_ids=1&item_type=post", "", ""), 401, "unauthorized"},
		{"no token, likers", f.request("GET", "/v1/likers?item_id=1&item_type=post", "", ""), 401, "unauthorized"},
		{"no token, batch", f.request("POST", "/v1/likes:batch", `{"ops":[]}`, ""), 401, "unauthorized"},
		{"user token, batch", f.request("POST", "/v1/likes:batch", `{"ops":[]}`, user), 403, "forbidden"},
		{"form", f.request("POST", "/v1/like", goodLike, user, "Content-Type", "text/plain"), 415, "unsupported_media_type"},
		{"empty body", f.request("POST", "/v1/like", "", user), 400, "body: the JSON ends"},
		{"query with a body", f.request("POST", "/v1/like?item_id=1", goodLike, user), 400, "query"},
		{"bad version", f.request("POST", "/v1/like", goodLike, user, "Like-Version", "AAAA"), 400, "Like-Version"},
		{"bad min version", f.request("DELETE", "/v1/like", goodLike, user, "Like-Min-Version", "AAAA"), 400, "Like-Min-Version"},
		{"changed version", f.request("POST", "/v1/like", goodLike, user, "Like-Version", "B"+foreign[1:]), 400, "Like-Version"},
		{"too many versions", f.request("POST", "/v1/like", goodLike, user, "Like-Version", strings.Repeat(foreign+",", maxVersions)+foreign), 400, "more than 16"},
		{"bad version, count", f.request("GET", "/v1/count?item_id=1&item_type=post", "", "", "Like-Min-Version", "?"), 400, "Like-Min-Version"},
		{"bad version, counts", f.request("GET", "/v1/counts?item_ids=1&item_type=post", "", "", "Like-Min-Version", "?"), 400, "Like-Min-Version"},
		{"bad version, has_liked", f.request("GET", "/v1/has_liked?item_ids=1&item_type=post", "", user, "Like-Min-Version", "?"), 400, "Like-Min-Version"},
		{"bad version, likers", f.request("GET", "/v1/likers?item_id=1&item_type=post", "", user, "Like-Min-Version", "?"), 400, "Like-Min-Version"},

		{"count, no id", f.request("GET", "/v1/count?item_type=post", "", ""), 400, "item_id: missing"},
		{"count, no type", f.request("GET", "/v1/count?item_id=1", "", ""), 400, "item_type: missing"},
		{"count, both types", f.request("GET", "/v1/count?item_id=1&item_type=post&type=post", "", ""), 400, "type: is item_type"},
		{"count, unknown type", f.request("GET", "/v1/count?item_id=1&type=planet", "", ""), 400, "item_type: "},
		{"count, id 01", f.request("GET", "/v1/count?item_id=01&item_type=post", "", ""), 400, "item_id: "},
		{"count, id +1", f.request("GET", "/v1/count?item_id=%2B1&item_type=post", "", ""), 400, "item_id: "},
		{"count, id blank 1", f.request("GET", "/v1/count?item_id=+1&item_type=post", "", ""), 400, "item_id: "},
		{"count, id 1.0", f.request("GET", "/v1/count?item_id=1.0&item_type=post", "", ""), 400, "item_id: "},
		{"count, id 1e3", f.request("GET", "/v1/count?item_id=1e3&item_type=post", "", ""), 400, "item_id: "},
		{"count, id 2^63", f.request("GET", "/v1/count?item_id=9223372036854775808&item_type=post", "", ""), 400, "item_id: "},
		{"count, id twice", f.request("GET", "/v1/count?item_id=1&item_id=1&item_type=post", "", ""), 400, "item_id: given twice"},
		{"count, unknown parameter", f.request("GET", "/v1/count?item_id=1&item_type=post&limit=1", "", ""), 400, `parameter \"limit\" is unknown`},
		{"count, bad escape", f.request("GET", "/v1/count?item_id=%zz&item_type=post", "", ""), 400, "item_id: "},
		{"count, bad counter", f.request("GET", "/v1/count?item_id=1&item_type=post&counter_types=stars", "", ""), 400, "counter_types[0]: "},
		{"counts, no ids", f.request("GET", "/v1/counts?item_type=post", "", ""), 400, "item_ids: missing"},
		{"counts, empty ids", f.request("GET", "/v1/counts?item_ids=&item_type=post", "", ""), 400, "item_ids: want"},
		{"counts, empty id", f.request("GET", "/v1/counts?item_ids=1,,2&item_type=post", "", ""), 400, "item_ids[1]: "},
		{"counts, 501 ids", f.request("GET", "/v1/counts?item_type=post&item_ids="+ids, "", ""), 400, "item_ids: want 1 to 500"},
		{"has_liked, 501 ids", f.request("GET", "/v1/has_liked?item_type=post&item_ids="+ids, "", user), 400, "item_ids: want 1 to 500"},
		{"has_liked, user_id", f.request("GET", "/v1/has_liked?item_type=post&item_ids=1&user_id=7", "", user), 400, "user_id: not allowed"},
		{"has_liked, user_id in the body", f.request("POST", "/v1/has_liked", `{"item_ids":["1"],"item_type":"post","user_id":7}`, user), 400, "user_id: not allowed"},
		{"has_liked, service without user", f.request("GET", "/v1/has_liked?item_type=post&item_ids=1", "", svc), 400, "user_id: missing"},
		{"has_liked, counter", f.request("GET", "/v1/has_liked?item_type=post&item_ids=1&counter=views", "", user), 400, "counter: "},
		{"likers, limit 0", f.request("GET", "/v1/likers?item_id=1&item_type=post&limit=0", "", user), 400, "limit: "},
		{"likers, limit 1001", f.request("GET", "/v1/likers?item_id=1&item_type=post&limit=1001", "", user), 400, "limit: "},
		{"likers, limit -1", f.request("GET", "/v1/likers?item_id=1&item_type=post&limit=-1", "", user), 400, "limit: "},
		{"likers, long cursor", f.request("GET", "/v1/likers?item_id=1&item_type=post&cursor="+strings.Repeat("x", 1025), "", user), 400, "cursor: "},

		{"unknown path", f.request("GET", "/v1/like/", "", ""), 404, "no_such_route"},
		{"unknown path, body", f.request("POST", "/v2/like", goodLike, user), 404, "no_such_route"},
		{"root", f.request("GET", "/", "", ""), 404, "no_such_route"},
		{"doubled slash", f.request("POST", "/v1//like", goodLike, user), 404, "no_such_route"},
		{"dotted path", f.request("GET", "/v1/../v1/count?item_id=1&item_type=post", "", ""), 404, "no_such_route"},
		{"metrics are not here", f.request("GET", "/metrics", "", ""), 404, "no_such_route"},
		{"profiles are not here", f.request("GET", "/debug/pprof/", "", ""), 404, "no_such_route"},
	} {
		if c.name == "form" {
			c.req.Header.Del("Content-Type")
			c.req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		a := f.do(c.req)
		require.Equal(t, c.status, a.status, "%s: %s", c.name, a.raw)
		require.Contains(t, a.raw, c.says, c.name)
		require.Zero(t, f.service.calls, "%s reached the service", c.name)
	}
	for _, c := range badBodies {
		target, token := map[string]string{"like": "/v1/like", "counts": "/v1/counts", "has": "/v1/has_liked", "batch": "/v1/likes:batch"}[c.shape], user
		if c.shape == "batch" {
			token = svc
		}
		a := f.do(f.request("POST", target, c.body, token))
		require.Contains(t, []int{400, 413}, a.status, "%.80s", c.body)
		require.Zero(t, f.service.calls, "%.80s reached the service", c.body)
	}
}

func TestAPI_WrongMethodsAre405AndChangeNothing(t *testing.T) {
	f := newFixture(t)
	user := f.token(42, auth.User)
	allow := map[string]string{
		"/v1/like": "POST, DELETE", "/v1/count": "GET, HEAD", "/v1/counts": "GET, HEAD, POST", "/v1/has_liked": "GET, HEAD, POST",
		"/v1/likers": "GET, HEAD", "/v1/likes:batch": "POST", "/healthz": "GET, HEAD", "/readyz": "GET, HEAD",
	}
	for path, allowed := range allow {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "LIKE"} {
			if strings.Contains(", "+allowed+",", ", "+method+",") {
				continue
			}
			a := f.do(f.request(method, path, goodLike, user))
			require.Equal(t, 405, a.status, "%s %s", method, path)
			require.Equal(t, allowed, a.header.Get("Allow"), "%s %s", method, path)
		}
	}
	for _, method := range []string{"GET", "HEAD"} {
		a := f.do(f.request(method, "/v1/like?item_id=1&item_type=post&user_id=42", goodLike, user))
		require.Equal(t, 405, a.status)
	}
	require.Zero(t, f.service.calls)
	require.Zero(t, f.counted())
}

func TestAPI_MediaTypes(t *testing.T) {
	f := newFixture(t)
	for value, status := range map[string]int{
		"": 200, "application/json": 200, "Application/JSON; charset=UTF-8": 200, `application/json;charset="utf-8"`: 200,
		"application/json; charset=utf-16": 415, "application/x-www-form-urlencoded": 415, "text/json": 415,
		"application/jsonx": 415, "application/json; charset": 415, "multipart/form-data": 415, ";": 415,
	} {
		req := f.request("POST", "/v1/like", goodLike, f.token(1, auth.User))
		req.Header.Del("Content-Type")
		if value != "" {
			req.Header.Set("Content-Type", value)
		}
		require.Equal(t, status, f.do(req).status, "%q", value)
	}
	twice := f.request("POST", "/v1/like", goodLike, f.token(1, auth.User), "Content-Type", "application/json")
	require.Equal(t, 415, f.do(twice).status)
	zipped := f.request("POST", "/v1/like", goodLike, f.token(1, auth.User), "Content-Encoding", "gzip")
	require.Equal(t, 415, f.do(zipped).status)
}

func TestAPI_BodyLimit(t *testing.T) {
	const limit = 1000
	f := newFixture(t, func(c *Config) { c.Limits.MaxBody = limit })
	pad := func(n int) string { return goodLike + strings.Repeat(" ", n-len(goodLike)) }
	for _, chunked := range []bool{false, true} {
		for n, status := range map[int]int{limit: 200, limit + 1: 413, 50 << 20: 413} {
			req := f.request("POST", "/v1/like", pad(n), f.token(1, auth.User))
			if chunked {
				req.ContentLength = -1
			}
			a := f.do(req)
			require.Equal(t, status, a.status, "%d bytes", n)
			require.Equal(t, status == 413, a.header.Get("Connection") == "close")
			if status == 413 {
				rest, err := io.Copy(io.Discard, req.Body)
				require.NoError(t, err)
				read := int64(n) - rest
				require.LessOrEqual(t, read, int64(64<<10), "the rest of the body is not read")
				require.Equal(t, chunked, read > 0, "of a body that says its length nothing is read")
			}
		}
	}
}

func TestCount_IsPublicAndFitForSharedCaches(t *testing.T) {
	f := newFixture(t)
	f.like("POST", 1, "123")
	for _, target := range []string{"/v1/count?item_id=123&item_type=post", "/v1/count?type=post&item_id=123", "/v1/count?item_id=%31%32%33&item_type=po%73t"} {
		a := f.do(f.request("GET", target, "", ""))
		require.Equal(t, 200, a.status)
		require.Equal(t, "123", a.body["item_id"])
		require.Equal(t, "post", a.body["item_type"])
		require.Equal(t, map[string]any{"likes": json.Number("1")}, a.body["counts"])
		require.Equal(t, false, a.body["cached"])
		at, err := time.Parse(time.RFC3339, as[string](t, a.body["as_of"]))
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), at, time.Minute)
		require.Equal(t, "public, s-maxage=1, stale-while-revalidate=1, stale-if-error=60", a.header.Get("Cache-Control"))
		require.Equal(t, "Authorization, Like-Min-Version", a.header.Get("Vary"))

		a = f.do(f.request("GET", target, "", f.token(2, auth.User)))
		require.Equal(t, map[string]any{"likes": json.Number("1")}, a.body["counts"])
		require.Equal(t, "private, no-store", a.header.Get("Cache-Control"), "what one user is told is not for all")
		require.Empty(t, a.header.Get("Vary"))
		require.Equal(t, 401, f.do(f.request("GET", target, "", "", "Authorization", "Bearer of-nothing")).status)
	}
	a := f.do(f.request("GET", "/v1/count?item_id=123&item_type=post&counter_types=likes,saves,likes", "", ""))
	require.Equal(t, 1, strings.Count(a.raw, `"likes"`))
	require.Equal(t, map[string]any{"likes": json.Number("1"), "saves": json.Number("0")}, a.body["counts"])
}

func TestCounts_AnswerByKeyInBothForms(t *testing.T) {
	f := newFixture(t)
	for user := likes.UserID(1); user <= 3; user++ {
		f.like("POST", user, "2")
	}
	f.like("POST", 1, "9223372036854775807")
	want := map[string]any{
		"post:1": map[string]any{"likes": json.Number("0")}, "post:2": map[string]any{"likes": json.Number("3")},
		"post:9223372036854775807": map[string]any{"likes": json.Number("1")},
	}
	get := f.do(f.request("GET", "/v1/counts?item_ids=1,2,9223372036854775807,2&item_type=post", "", ""))
	post := f.do(f.request("POST", "/v1/counts", `{"items":[{"item_id":1,"item_type":"post"},{"item_id":"2","item_type":"post"},
		{"item_id":2,"item_type":"post"},{"item_id":9223372036854775807,"item_type":"post"}],"counter_types":["likes","likes"]}`, ""))
	for _, a := range []answer{get, post} {
		require.Equal(t, 200, a.status, a.raw)
		require.Equal(t, want, a.body["counts"])
		require.NotContains(t, a.body, "errors")
		require.GreaterOrEqual(t, number(t, a.body["took_ms"]), int64(0))
		require.Equal(t, 1, strings.Count(a.raw, `"post:2"`))
		require.Equal(t, "private, no-store", a.header.Get("Cache-Control"))
	}
	both := f.do(f.request("POST", "/v1/counts", `{"items":[{"item_id":"2","item_type":"post"}],"counter_types":["saves","likes"]}`, ""))
	require.Equal(t, map[string]any{"post:2": map[string]any{"likes": json.Number("3"), "saves": json.Number("0")}}, both.body["counts"])
}

func TestBatches_AtTheirMaximum(t *testing.T) {
	f := newFixture(t)
	items, ops := make([]string, likes.MaxRead), make([]string, likes.MaxApply)
	ids := make([]string, likes.MaxRead)
	for i := range ops {
		ops[i] = fmt.Sprintf(`{"user_id":"%d","item_id":"%d","item_type":"post","action":"like"}`, i+1, i%likes.MaxRead+1)
	}
	for i := range items {
		items[i] = fmt.Sprintf(`{"item_id":"%d","item_type":"post"}`, i+1)
		ids[i] = strconv.Itoa(i + 1)
	}
	a := f.do(f.request("POST", "/v1/likes:batch", `{"ops":[`+strings.Join(ops, ",")+`]}`, f.token(1, auth.Service)))
	require.Equal(t, 200, a.status)
	require.Len(t, a.body["results"], likes.MaxApply)
	counts := f.do(f.request("POST", "/v1/counts", `{"items":[`+strings.Join(items, ",")+`]}`, ""))
	require.Len(t, counts.body["counts"], likes.MaxRead)
	for key, n := range as[map[string]any](t, counts.body["counts"]) {
		require.Equal(t, map[string]any{"likes": json.Number("2")}, n, key)
	}
	has := f.do(f.request("GET", "/v1/has_liked?item_type=post&item_ids="+strings.Join(ids, ","), "", f.token(500, auth.User)))
	require.Len(t, has.body["liked"], likes.MaxRead)
	for key, liked := range as[map[string]any](t, has.body["liked"]) {
		require.Equal(t, key == "500", liked, key)
	}
}

func TestHasLiked_AnswersTheTokensUserInBothForms(t *testing.T) {
	f := newFixture(t)
	f.like("POST", 42, "1")
	f.like("POST", 42, "3")
	f.like("DELETE", 42, "3")
	f.like("POST", 7, "2")
	want := map[string]any{"1": true, "2": false, "3": false}
	for _, req := range []*http.Request{
		f.request("GET", "/v1/has_liked?item_ids=1,2,3,1&item_type=post", "", f.token(42, auth.User)),
		f.request("POST", "/v1/has_liked", `{"item_ids":["1",2,"3","1"],"item_type":"post"}`, f.token(42, auth.User)),
		f.request("GET", "/v1/has_liked?item_ids=1,2,3&item_type=post&user_id=42", "", f.token(1, auth.Service)),
		f.request("POST", "/v1/has_liked", `{"user_id":"42","item_ids":["1","2","3"],"item_type":"post","counter":"likes"}`, f.token(1, auth.Service)),
	} {
		a := f.do(req)
		require.Equal(t, 200, a.status, a.raw)
		require.Equal(t, want, a.body["liked"])
		require.Equal(t, "private, no-store", a.header.Get("Cache-Control"))
		require.Empty(t, a.header.Get("Etag"))
	}
	saves := f.do(f.request("GET", "/v1/has_liked?item_ids=1&item_type=post&counter=saves", "", f.token(42, auth.User)))
	require.Equal(t, map[string]any{"1": false}, saves.body["liked"])
}

func TestLikers_PagesToTheEnd(t *testing.T) {
	f := newFixture(t)
	const n = 25
	for user := likes.UserID(n); user >= 1; user-- {
		f.like("POST", user, "1")
	}
	var got []string
	cursor, pages := "", 0
	for {
		a := f.do(f.request("GET", "/v1/likers?item_id=1&item_type=post&limit=10&cursor="+cursor, "", f.token(1, auth.User)))
		require.Equal(t, 200, a.status, a.raw)
		require.Equal(t, "private, no-store", a.header.Get("Cache-Control"))
		for _, l := range as[[]any](t, a.body["likers"]) {
			liker := as[map[string]any](t, l)
			got = append(got, as[string](t, liker["user_id"]))
			_, err := time.Parse(time.RFC3339, as[string](t, liker["liked_at"]))
			require.NoError(t, err)
		}
		pages++
		if cursor = as[string](t, a.body["next_cursor"]); cursor == "" {
			break
		}
	}
	require.Equal(t, 3, pages)
	require.Len(t, got, n)
	for i, user := range got {
		require.Equal(t, strconv.Itoa(i+1), user)
	}
	empty := f.do(f.request("GET", "/v1/likers?item_id=2&type=post", "", f.token(1, auth.User)))
	require.Equal(t, `{"likers":[],"next_cursor":""}`, empty.raw)
	wrong := f.do(f.request("GET", "/v1/likers?item_id=1&type=post&cursor=made-up", "", f.token(1, auth.User)))
	require.Equal(t, 400, wrong.status)
}

func TestBatch_AnswersByPositionInOrder(t *testing.T) {
	f := newFixture(t)
	op := func(user int, action, counter string) string {
		return fmt.Sprintf(`{"user_id":%d,"item_id":"5","item_type":"reel","action":%q%s}`, user, action, counter)
	}
	a := f.do(f.request("POST", "/v1/likes:batch", `{"ops":[`+strings.Join([]string{
		op(1, "like", ""), op(2, "like", ""), op(1, "like", ""), op(1, "unlike", ""), op(3, "unlike", ""), op(1, "like", `,"counter":"saves"`),
	}, ",")+`]}`, f.token(9, auth.Service)))
	require.Equal(t, 200, a.status, a.raw)
	require.Equal(t, `{"results":[`+
		`{"status":"liked","count":1,"count_formatted":"1","user_liked":true,"changed":true},`+
		`{"status":"liked","count":2,"count_formatted":"2","user_liked":true,"changed":true},`+
		`{"status":"already_liked","count":2,"count_formatted":"2","user_liked":true,"changed":false},`+
		`{"status":"unliked","count":1,"count_formatted":"1","user_liked":false,"changed":true},`+
		`{"status":"not_liked","count":1,"count_formatted":"1","user_liked":false,"changed":false},`+
		`{"status":"saved","count":1,"count_formatted":"1","user_saved":true,"changed":true}]}`, a.raw)
}

// A store's fault is an entry's own error, never a 0 or a "no".
func TestBatches_EntriesThatFailStandBesideThoseThatDidNot(t *testing.T) {
	f := newFixture(t)
	f.like("POST", 42, "1")
	user := f.token(42, auth.User)
	requests := map[string]func() *http.Request{
		"counts": func() *http.Request {
			return f.request("GET", "/v1/counts?item_ids=1,2,3&item_type=post&counter_types=likes,saves", "", "")
		},
		"liked": func() *http.Request {
			return f.request("GET", "/v1/has_liked?item_ids=1,2,3&item_type=post", "", user)
		},
	}
	for member, request := range requests {
		for mask := range 8 { // which of the three entries fail
			f.service.fault = func(i int) error {
				if mask>>i&1 == 1 {
					return fmt.Errorf("shard %d: %w", i, likes.ErrUnavailable)
				}
				return nil
			}
			a := f.do(request())
			if mask == 7 {
				require.Equal(t, 503, a.status)
				require.Equal(t, "unavailable", a.body["error"])
				continue
			}
			require.Equal(t, 200, a.status, a.raw)
			good, _ := a.body[member].(map[string]any)
			bad, _ := a.body["errors"].(map[string]any)
			require.Len(t, good, 3-len(bad))
			for i := range 3 {
				key := strconv.Itoa(i + 1)
				if member == "counts" {
					key = "post:" + key
				}
				if mask>>i&1 == 1 {
					require.NotContains(t, good, key)
					require.Equal(t, "unavailable", as[map[string]any](t, bad[key])["error"])
				} else {
					require.Contains(t, good, key)
				}
			}
			require.NotContains(t, a.raw, "shard")
		}
	}
}

func TestBatch_Is503OnlyIfEveryEntryFailedByAStoresFault(t *testing.T) {
	body := `{"ops":[{"user_id":1,"item_id":1,"item_type":"post","action":"like"},{"user_id":2,"item_id":1,"item_type":"post","action":"like"}]}`
	for _, c := range []struct {
		name   string
		errs   [2]error
		status int
		code   string
	}{
		{"one failed", [2]error{likes.ErrUnavailable, nil}, 200, ""},
		{"both failed", [2]error{likes.ErrOverloaded, likes.ErrUnavailable}, 503, "overloaded"},
		{"one may have been applied", [2]error{likes.ErrUnavailable, likes.ErrUncertain}, 503, "uncertain"},
		{"one was the client's mistake", [2]error{likes.ErrNotFound, likes.ErrUnavailable}, 200, ""},
		{"both were", [2]error{likes.ErrNotFound, likes.ErrNotFound}, 200, ""},
	} {
		f := newFixture(t)
		f.service.fault = func(i int) error { return c.errs[i] }
		a := f.do(f.request("POST", "/v1/likes:batch", body, f.token(9, auth.Service)))
		require.Equal(t, c.status, a.status, c.name)
		if c.status != 200 {
			require.Equal(t, c.code, a.body["error"], c.name)
			continue
		}
		for i, r := range as[[]any](t, a.body["results"]) {
			_, failed := as[map[string]any](t, r)["error"]
			require.Equal(t, c.errs[i] != nil, failed, c.name)
		}
	}
}

func TestVersions_ReachTheService(t *testing.T) {
	f := newFixture(t)
	first := f.like("POST", 42, "1").header.Get("Like-Version")
	second := f.like("POST", 42, "2").header.Get("Like-Version")
	v1, err := f.versions.Decode(first)
	require.NoError(t, err)
	v2, err := f.versions.Decode(second)
	require.NoError(t, err)
	user := f.token(42, auth.User)

	f.service.after = nil
	f.do(f.request("DELETE", "/v1/like", goodLike, user, "Like-Version", second, "Like-Min-Version", first))
	f.do(f.request("POST", "/v1/like", goodLike, user))
	require.Equal(t, []likes.Clock{max(v1.Clock, v2.Clock), 0}, f.service.after)

	for _, target := range []string{"/v1/count?item_id=1&item_type=post", "/v1/counts?item_ids=1&item_type=post", "/v1/has_liked?item_ids=1&item_type=post"} {
		f.service.seen = nil
		require.Equal(t, 200, f.do(f.request("GET", target, "", user, "Like-Min-Version", first+", "+second)).status)
		require.Equal(t, [][]likes.Version{{v1, v2}}, f.service.seen, target)
	}

	ahead := v1
	ahead.Clock += 1 << 40
	token, err := f.versions.Append(nil, ahead)
	require.NoError(t, err)
	a := f.do(f.request("GET", "/v1/count?item_id=1&item_type=post", "", "", "Like-Min-Version", string(token)))
	require.Equal(t, 503, a.status)
	require.Equal(t, "version_not_reached", a.body["error"])
}

type hanging struct{ likes.Service }

func (hanging) Counts(ctx context.Context, _ likes.Counter, items []likes.Item, _ []likes.Version) []likes.Count {
	<-ctx.Done()
	return []likes.Count{{Err: ctx.Err()}}
}

func TestAPI_ARequestEndsAtItsDeadline(t *testing.T) {
	f := newFixture(t, func(c *Config) {
		c.Service = hanging{c.Service}
		c.Limits.RequestTimeout, c.Limits.MinVersionWait = 10*time.Millisecond, time.Millisecond
	})
	a := f.do(f.request("GET", "/v1/count?item_id=1&item_type=post", "", ""))
	require.Equal(t, 503, a.status)
	require.Equal(t, "timeout", a.body["error"])
}

type panicking struct{ likes.Service }

func (panicking) Apply(context.Context, []likes.Mutation) []likes.Result {
	panic("index 7, key hunter2")
}

// watcher keeps what an Observer is told.
type watcher struct{ got []string }

func (w *watcher) Request(route string, status int, took time.Duration) {
	if took <= 0 {
		route = "no time: " + route
	}
	w.got = append(w.got, fmt.Sprint(route, " ", status))
}

func TestAPI_APanicIsA500AndTheNextRequestIsServed(t *testing.T) {
	w := &watcher{}
	f := newFixture(t, func(c *Config) { c.Service, c.Observer = panicking{c.Service}, w })
	a := f.do(f.request("POST", "/v1/like", goodLike, f.token(1, auth.User)))
	require.Equal(t, 500, a.status)
	require.Equal(t, "internal", a.body["error"])
	require.NotContains(t, a.raw, "hunter2")
	require.Contains(t, f.log.String(), "hunter2")
	require.Contains(t, f.log.String(), a.header.Get("X-Request-Id"))
	require.Zero(t, f.counted())
	require.Equal(t, []string{"POST /v1/like 500", "GET /v1/count 200"}, w.got)
}

func TestAPI_ObserverSeesRoutesAndNeverPaths(t *testing.T) {
	w := &watcher{}
	f := newFixture(t, func(c *Config) { c.Observer = w })
	f.like("POST", 1, "1")
	f.do(f.request("GET", "/v1/count?item_id=1&item_type=post", "", ""))
	f.do(f.request("HEAD", "/v1/like", "", ""))
	f.do(f.request("GET", "/v1/secret/123", "", ""))
	f.do(f.request("GET", "/a//b", "", ""))
	require.Equal(t, []string{"POST /v1/like 200", "GET /v1/count 200", "other /v1/like 405", "other 404", "other 404"}, w.got)
}

func TestAPI_RequestIDs(t *testing.T) {
	f := newFixture(t)
	id := func(header ...string) string {
		return f.do(f.request("GET", "/v1/count?item_id=1&item_type=post", "", "", header...)).header.Get("X-Request-Id")
	}
	first, second := id(), id()
	require.NotEqual(t, first, second)
	require.Equal(t, "abc-1.2_X", id("X-Request-Id", "abc-1.2_X"))
	for _, hostile := range []string{"a b", "a\"b", strings.Repeat("x", 65), "é", "a\nlevel=ERROR"} {
		require.NotEqual(t, hostile, id("X-Request-Id", hostile))
	}
	require.Len(t, id("X-Request-Id", "one", "X-Request-Id", "two"), len(id()), "of two ids neither is believed")
}

func TestNew_RefusesLimitsThatAreNone(t *testing.T) {
	f := newFixture(t)
	for _, limits := range []Limits{{MaxBody: 0, RequestTimeout: 1}, {MaxBody: 1, RequestTimeout: 0}, {MaxBody: -1, RequestTimeout: 1}} {
		cfg := f.api.cfg
		cfg.Limits = limits
		_, err := New(cfg)
		require.ErrorIs(t, err, likes.ErrInvalid, "%+v", limits)
	}
}
