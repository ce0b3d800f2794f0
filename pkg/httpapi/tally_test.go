package httpapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/auth"
	"likectl/pkg/likes"
)

const (
	event1     = "0192f6a1-7c3e-7def-8123-456789abcdef"
	goodEvent  = `{"item_id":"1","item_type":"post","event_id":"` + event1 + `"}`
	otherEvent = `{"item_id":"1","item_type":"post","event_id":"1192f6a1-7c3e-4def-8123-456789abcdef"}`
)

func TestTally_AnEventCountsOnce(t *testing.T) {
	f := newFixture(t)
	user, svc := f.token(42, auth.User), f.token(1, auth.Service)
	for i, step := range []struct{ path, body, token, want string }{
		{"/v1/view", goodEvent, "", `{"status":"counted","count":1,"count_formatted":"1"}`},
		{"/v1/view", goodEvent, "", `{"status":"duplicate","count":1,"count_formatted":"1"}`},
		{"/v1/view", strings.ReplaceAll(goodEvent, event1, strings.ToUpper(event1)), user, `{"status":"duplicate","count":1,"count_formatted":"1"}`},
		{"/v1/view", otherEvent, user, `{"status":"counted","count":2,"count_formatted":"2"}`},
		{"/v1/view", goodLike, svc, `{"status":"counted","count":3,"count_formatted":"3"}`},
		{"/v1/view", goodLike, svc, `{"status":"counted","count":4,"count_formatted":"4"}`},
		{"/v1/share", goodEvent, user, `{"status":"counted","count":1,"count_formatted":"1"}`},
		{"/v1/share", `{"user_id":"7",` + goodEvent[1:], svc, `{"status":"duplicate","count":1,"count_formatted":"1"}`},
	} {
		a := f.do(f.request("POST", step.path, step.body, step.token))
		require.Equal(t, 200, a.status, a.raw)
		require.Equal(t, step.want, a.raw, "step %d", i)
		require.Equal(t, "private, no-store", a.header.Get("Cache-Control"))
		require.Empty(t, a.header.Get("Like-Version"))
	}
	a := f.do(f.request("GET", "/v1/count?item_id=1&item_type=post&counter_types=shares,views,likes", "", ""))
	require.Contains(t, a.raw, `"counts":{"likes":0,"views":4,"shares":1}`)
}

func TestTally_WhoMayCountWhat(t *testing.T) {
	f := newFixture(t)
	user, svc := f.token(42, auth.User), f.token(1, auth.Service)
	named := `{"item_id":"1","item_type":"post","user_id":"7"}`
	for _, c := range []struct {
		path, body, token string
		status            int
		says              string
	}{
		{"/v1/view", goodLike, "nonsense", 401, "token_invalid"},
		{"/v1/view", named, "", 400, "user_id: not allowed"},
		{"/v1/view", named, user, 400, "user_id: not allowed"},
		{"/v1/share", goodLike, "", 401, "unauthorized"},
		{"/v1/share", named, user, 400, "user_id: not allowed"},
		{"/v1/view", `{"item_id":"1","item_type":"post","event_id":"7"}`, "", 400, "event_id: "},
		{"/v1/view", `{"item_id":"1","item_type":"post","event_id":7}`, "", 400, "event_id: "},
		{"/v1/view", `{"item_id":"1","item_type":"post","event_id":""}`, "", 400, "event_id: "},
		{"/v1/view", `{"item_type":"post"}`, "", 400, "item_id: missing"},
		{"/v1/view", `{"item_id":"1","item_type":"post","counter":"shares"}`, "", 400, `member \"counter\" is unknown`},
		{"/v1/like", goodEvent, user, 400, `member \"event_id\" is unknown`},
		{"/v1/likes:batch", `{"ops":[{"user_id":"7","item_id":"1","item_type":"post","action":"like","counter":"views"}]}`, svc, 400, "ops[0].counter: views is not a set counter but a tally"},
	} {
		a := f.do(f.request("POST", c.path, c.body, c.token))
		require.Equal(t, c.status, a.status, "%v: %s", c, a.raw)
		require.Contains(t, a.raw, c.says, "%v", c)
		require.Zero(t, f.service.calls, "%v reached the service", c)
	}
	for _, c := range []struct{ path, body, token string }{
		{"/v1/view", goodLike, ""}, {"/v1/view", goodLike, user}, {"/v1/view", goodLike, svc}, {"/v1/view", named, svc}, {"/v1/share", named, svc},
	} {
		require.Equal(t, 200, f.do(f.request("POST", c.path, c.body, c.token)).status, "%v", c)
	}
	a := f.do(f.request("GET", "/v1/view?item_id=1&item_type=post", "", ""))
	require.Equal(t, 405, a.status)
	require.Equal(t, "POST", a.header.Get("Allow"))
}

// lost forwards the first call and loses its answer.
type lost struct {
	likes.Service
	err error
}

func (l *lost) Apply(ctx context.Context, ms []likes.Mutation) []likes.Result {
	rs := l.Service.Apply(ctx, ms)
	if err := l.err; err != nil {
		l.err = nil
		return []likes.Result{{Err: err}}
	}
	return rs
}

func TestTally_AnUncertainEventCanBeRepeated(t *testing.T) {
	uncertain := likes.Errorf(likes.ErrUncertain, "the answer was lost")
	service := &lost{err: uncertain}
	f := newFixture(t, func(c *Config) { service.Service, c.Service = c.Service, service })
	a := f.do(f.request("POST", "/v1/view", goodLike, ""))
	require.Equal(t, 503, a.status)
	require.Equal(t, "uncertain", a.body["error"])
	require.Contains(t, f.log.String(), "the answer was lost")
	id := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`).FindString(as[string](t, a.body["detail"]))
	a = f.do(f.request("POST", "/v1/view", `{"item_id":"1","item_type":"post","event_id":"`+id+`"}`, ""))
	require.Equal(t, `{"status":"duplicate","count":1,"count_formatted":"1"}`, a.raw)

	service.err = uncertain
	a = f.do(f.request("POST", "/v1/view", goodEvent, ""))
	require.Equal(t, 503, a.status)
	require.NotContains(t, a.raw, event1, "the client has its own id")
	service.err = likes.Errorf(likes.ErrUnavailable, "away")
	a = f.do(f.request("POST", "/v1/view", goodLike, ""))
	require.Contains(t, a.raw, "nothing was applied")
}

func TestTally_AcceptedIs202AndHasNoCount(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.Service = accepting{c.Service} })
	a := f.do(f.request("POST", "/v1/view", goodLike, ""))
	require.Equal(t, http.StatusAccepted, a.status)
	require.Equal(t, `{"status":"accepted"}`, a.raw)
}

func TestSave_HasItsOwnCounterAndWords(t *testing.T) {
	f := newFixture(t)
	user := f.token(42, auth.User)
	for _, step := range []struct{ method, want string }{
		{"DELETE", `{"status":"not_saved","count":0,"count_formatted":"0","user_saved":false,"changed":false}`},
		{"POST", `{"status":"saved","count":1,"count_formatted":"1","user_saved":true,"changed":true}`},
		{"POST", `{"status":"already_saved","count":1,"count_formatted":"1","user_saved":true,"changed":false}`},
		{"DELETE", `{"status":"unsaved","count":0,"count_formatted":"0","user_saved":false,"changed":true}`},
		{"POST", `{"status":"saved","count":1,"count_formatted":"1","user_saved":true,"changed":true}`},
	} {
		a := f.do(f.request(step.method, "/v1/save", goodLike, user))
		require.Equal(t, step.want, a.raw)
		v, err := f.versions.Decode(a.header.Get("Like-Version"))
		require.NoError(t, err)
		require.Equal(t, likes.Saves, v.Edge.Counter)
	}
	for query, want := range map[string]string{"": "false", "&counter=likes": "false", "&counter=saves": "true"} {
		a := f.do(f.request("GET", "/v1/has_liked?item_ids=1&item_type=post"+query, "", user))
		require.Equal(t, `{"liked":{"1":`+want+`}}`, a.raw, query)
	}
	a := f.do(f.request("POST", "/v1/has_liked", `{"item_ids":["1"],"item_type":"post","counter":"saves"}`, user))
	require.Equal(t, `{"liked":{"1":true}}`, a.raw)
	a = f.do(f.request("GET", "/v1/likers?item_id=1&item_type=post&counter=saves", "", user))
	require.Contains(t, a.raw, `"user_id":"42"`)
	a = f.do(f.request("POST", "/v1/likes:batch",
		`{"ops":[{"user_id":"42","item_id":"1","item_type":"post","action":"unlike","counter":"saves"}]}`, f.token(1, auth.Service)))
	require.Contains(t, a.raw, `"status":"unsaved"`)
	require.Zero(t, f.counted())
}

func TestMyLikes_InPages(t *testing.T) {
	f := newFixture(t)
	user := f.token(42, auth.User)
	for _, id := range []string{"5", "9007199254740993", "7"} {
		f.like("POST", 42, id)
	}
	f.like("POST", 43, "8")
	require.Equal(t, 200, f.do(f.request("POST", "/v1/like", `{"item_id":"6","item_type":"reel"}`, user)).status)
	require.Equal(t, 200, f.do(f.request("POST", "/v1/save", `{"item_id":"1","item_type":"post"}`, user)).status)
	var got []string
	cursor := ""
	for range 3 {
		a := f.do(f.request("GET", "/v1/me/likes?limit=2&cursor="+cursor, "", user))
		require.Equal(t, 200, a.status, a.raw)
		require.Equal(t, "private, no-store", a.header.Get("Cache-Control"))
		for _, l := range as[[]any](t, a.body["likes"]) {
			member := as[map[string]any](t, l)
			at, err := time.Parse(time.RFC3339Nano, as[string](t, member["liked_at"]))
			require.NoError(t, err)
			require.WithinDuration(t, time.Now(), at, time.Minute)
			got = append(got, as[string](t, member["item_type"])+":"+as[string](t, member["item_id"]))
			require.Len(t, member, 3)
		}
		if cursor = as[string](t, a.body["next_cursor"]); cursor == "" {
			break
		}
	}
	require.Equal(t, []string{"post:9007199254740993", "post:7", "post:5", "reel:6"}, got)

	a := f.do(f.request("GET", "/v1/me/likes?counter=saves", "", user))
	require.Contains(t, a.raw, `{"likes":[{"item_id":"1","item_type":"post","liked_at":`)
	a = f.do(f.request("GET", "/v1/me/likes?user_id=43", "", f.token(1, auth.Service)))
	require.Contains(t, a.raw, `"item_id":"8"`)
	f.service.calls = 0
	for query, says := range map[string]string{
		"?counter=views": "counter: views is not a set counter", "?limit=0": "limit: ", "?limit=1001": "limit: ", "?user_id=43": "user_id: not allowed",
		"?cursor=" + strings.Repeat("x", 1025): "cursor: ", "?item_type=post": "is unknown",
	} {
		a := f.do(f.request("GET", "/v1/me/likes"+query, "", user))
		require.Equal(t, 400, a.status, query)
		require.Contains(t, a.raw, says)
	}
	require.Equal(t, 401, f.do(f.request("GET", "/v1/me/likes", "", "")).status)
	require.Zero(t, f.service.calls)
}

// TestCount_ETag asks again with what a cache has.
func TestCount_ETag(t *testing.T) {
	f := newFixture(t)
	const path = "/v1/count?item_id=1&item_type=post&counter_types=likes,views"
	ask := func(header ...string) *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		f.api.ServeHTTP(rec, f.request("GET", path, "", "", header...))
		return rec
	}
	first := ask()
	etag := first.Header().Get("ETag")
	require.Regexp(t, `^W/"[!-~]+"$`, etag)
	require.Equal(t, etag, ask().Header().Get("ETag"), "as_of differs, the counts do not")
	for _, header := range []string{etag, "*", `"x", ` + etag, strings.TrimPrefix(etag, "W/"), `W/"x",` + etag + `,"y"`} {
		rec := ask("If-None-Match", header)
		require.Equal(t, http.StatusNotModified, rec.Code, header)
		require.Empty(t, rec.Body.String())
		require.Equal(t, etag, rec.Header().Get("ETag"))
		require.Equal(t, first.Header().Get("Cache-Control"), rec.Header().Get("Cache-Control"))
		require.Equal(t, first.Header().Get("Vary"), rec.Header().Get("Vary"))
		require.Empty(t, rec.Header().Get("Content-Length"), "it would be the body's")
		require.Empty(t, rec.Header().Get("Content-Type"))
	}
	for _, header := range []string{`"x"`, `W/"x"`, "x", "", `"` + etag + `"`} {
		require.Equal(t, 200, ask("If-None-Match", header).Code, header)
	}
	require.Equal(t, 200, f.do(f.request("POST", "/v1/view", goodLike, "")).status)
	changed := ask("If-None-Match", etag)
	require.Equal(t, 200, changed.Code, "a view changes the tag")
	require.NotEqual(t, etag, changed.Header().Get("ETag"))
	f.like("POST", 1, "1")
	require.Equal(t, 200, ask("If-None-Match", changed.Header().Get("ETag")).Code, "and so does a like")

	f.service.fault = func(int) error { return likes.Errorf(likes.ErrUnavailable, "away") }
	failed := ask("If-None-Match", "*")
	require.Equal(t, 503, failed.Code)
	require.Empty(t, failed.Header().Get("ETag"))
}
