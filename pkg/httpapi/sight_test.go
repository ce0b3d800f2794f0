package httpapi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/auth"
	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/visibility"
)

// The suites in tiers/tiertest hold every engine to who may see what. Here is what
// only a broken store, limits and a look at the service show.

// seeing is every route that asks who may see, with a user's token.
func seeing(item string) []struct{ method, path, body string } {
	body := `{"item_id":"` + item + `","item_type":"post"}`
	one, many := "?item_type=post&item_id="+item, "?item_type=post&item_ids="+item
	return []struct{ method, path, body string }{
		{"POST", "/v1/like", body},
		{"DELETE", "/v1/like", body},
		{"POST", "/v1/save", body},
		{"DELETE", "/v1/save", body},
		{"POST", "/v1/view", body},
		{"POST", "/v1/share", body},
		{"GET", "/v1/count" + one, ""},
		{"GET", "/v1/counts" + many, ""},
		{"POST", "/v1/counts", `{"items":[` + body + `]}`},
		{"GET", "/v1/has_liked" + many, ""},
		{"POST", "/v1/has_liked", `{"item_ids":["` + item + `"],"item_type":"post"}`},
		{"GET", "/v1/likers" + one, ""},
	}
}

// away is a catalog whose store does not answer.
type away struct{ store.Catalog }

var errAway = errors.New("postgres at 10.0.0.1 is away")

func (away) Facts(context.Context, likes.UserID, []likes.Item, []visibility.Facts) error {
	return errAway
}

func (away) Blocked(context.Context, likes.UserID, []likes.UserID, []bool) error { return errAway }

func TestSight_AStoreThatIsAwayIsA503AndNothingElse(t *testing.T) {
	for _, restricts := range []bool{false, true} { // which of the two questions fails
		f := newFixture(t, func(c *Config) {
			guard, err := visibility.New(visibility.Config{
				Source: asksFacts{away{c.Catalog}, restricts}, Cache: time.Second, MaxEntries: 10,
			})
			require.NoError(t, err)
			c.Guard = guard
		})
		calls := append(seeing("1"), struct{ method, path, body string }{
			"POST", "/v1/likes:batch", `{"ops":[{"user_id":"1","item_id":"1","item_type":"post","action":"like"}]}`,
		})
		for _, call := range calls {
			token := f.token(9, auth.User)
			if strings.HasSuffix(call.path, "batch") {
				token = f.token(9, auth.Service)
			}
			a := f.do(f.request(call.method, call.path, call.body, token))
			require.Equal(t, 503, a.status, "%s %s: %s", call.method, call.path, a.raw)
			require.Equal(t, "unavailable", a.body["error"])
			require.NotContains(t, a.raw, "10.0.0.1")
		}
		require.Zero(t, f.service.calls, "the service was asked before it was known who may see")
		// me/likes asks about the items of a page, so there must be one.
		edge := likes.Edge{Counter: likes.Likes, Item: likes.Item{Type: 1, ID: 1}, User: 9}
		require.NoError(t, f.service.Service.Apply(t.Context(), []likes.Mutation{{Op: likes.Set, Edge: edge}})[0].Err)
		require.Equal(t, 503, f.do(f.request("GET", "/v1/me/likes", "", f.token(9, auth.User))).status)
	}
}

// asksFacts says that something restricts, or fails to say.
type asksFacts struct {
	away
	restricts bool
}

func (a asksFacts) Restricts(context.Context) (bool, error) {
	if a.restricts {
		return true, nil
	}
	return false, errAway
}

func TestSight_BlocksThatCannotBeReadAreA503(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.Catalog = away{c.Catalog} })
	f.like("POST", 1, "1")
	a := f.do(f.request("GET", "/v1/likers?item_id=1&item_type=post", "", f.token(9, auth.User)))
	require.Equal(t, 503, a.status)
	require.NotContains(t, a.raw, `"user_id"`)
}

// The rates a caller is told count refusals like all calls.
func TestSight_ARefusedCallReachesNoServiceAndCostsWhatAnyCallCosts(t *testing.T) {
	rates := func(t *testing.T, item string) string {
		t.Helper()
		f, _ := limited(t, 100)
		require.Equal(t, 200, f.tell("PUT", "/v1/items", `{"item_id":"1","item_type":"post","owner_id":"7","visibility":"private"}`).status)
		require.Equal(t, 200, f.tell("DELETE", "/v1/items", `{"item_id":"2","item_type":"post"}`).status)
		var all strings.Builder
		for i, call := range seeing(item) {
			req := f.request(call.method, call.path, call.body, f.token(9, auth.User), "X-Request-Id", "same")
			a := f.do(req)
			fmt.Fprintln(&all, i, call.method, a.status, a.header.Get("RateLimit-Policy"), a.header.Get("RateLimit"))
		}
		require.Zero(t, f.service.calls, "item %s", item)
		return all.String()
	}
	synctest.Test(t, func(t *testing.T) { // what was used comes back with time
		private, deleted := rates(t, "1"), rates(t, "2")
		require.Equal(t, private, deleted)
		require.Contains(t, private, `"like-60";r=99`)
	})
}

func TestSight_HiddenCountsAreSaidToBeHidden(t *testing.T) {
	f := newFixture(t)
	for user := likes.UserID(1); user <= 3; user++ {
		f.like("POST", user, "1")
	}
	require.Equal(t, 200, f.tell("PUT", "/v1/items", `{"item_id":"1","item_type":"post","owner_id":"7","counts":"hidden"}`).status)
	stranger, owner := f.token(9, auth.User), f.token(7, auth.User)
	f.service.calls = 0
	for _, path := range []string{"/v1/count?item_id=1&item_type=post", "/v1/counts?item_ids=1&item_type=post", "/v1/likers?item_id=1&item_type=post"} {
		require.Equal(t, 200, f.do(f.request("GET", path, "", stranger)).status)
	}
	require.Zero(t, f.service.calls, "a number that is hidden was read")
	for _, step := range []struct{ method, path, body, token, want string }{
		{"POST", "/v1/like", goodLike, stranger, `{"status":"liked","hidden":true,"user_liked":true,"changed":true}`},
		{"POST", "/v1/save", goodLike, stranger, `{"status":"saved","hidden":true,"user_saved":true,"changed":true}`},
		{"POST", "/v1/view", goodLike, "", `{"status":"counted","hidden":true}`},
		{"GET", "/v1/count?item_id=1&item_type=post", "", "", `{"item_id":"1","item_type":"post","hidden":true}`},
		{"GET", "/v1/likers?item_id=1&item_type=post", "", stranger, `{"hidden":true,"likers":[],"next_cursor":""}`},
		{"GET", "/v1/counts?item_ids=1,2&item_type=post", "", stranger, `{"counts":{"post:1":{"hidden":true},"post:2":{"likes":0}},"cached":false,`},
		{"GET", "/v1/has_liked?item_ids=1&item_type=post", "", stranger, `{"liked":{"1":true}}`},
		{"GET", "/v1/count?item_id=1&item_type=post", "", owner, `{"item_id":"1","item_type":"post","counts":{"likes":4},`},
		{"POST", "/v1/like", goodLike, owner, `{"status":"liked","count":5,"count_formatted":"5","user_liked":true,"changed":true}`},
		{"DELETE", "/v1/like", goodLike, owner, `{"status":"unliked","count":4,"count_formatted":"4","user_liked":false,"changed":true}`},
		{"GET", "/v1/likers?item_id=1&item_type=post&limit=1", "", owner, `{"likers":[{"user_id":"1",`},
		{"GET", "/v1/count?item_id=1&item_type=post", "", f.token(backend, auth.Service), `{"item_id":"1","item_type":"post","hidden":true}`},
		{"GET", "/v1/count?item_id=1&item_type=post&user_id=7", "", f.token(backend, auth.Service), `{"item_id":"1","item_type":"post","counts":{"likes":4},`},
	} {
		a := f.do(f.request(step.method, step.path, step.body, step.token))
		require.Equal(t, 200, a.status, a.raw)
		require.True(t, strings.HasPrefix(a.raw, step.want), "%s %s: %s", step.method, step.path, a.raw)
		require.Equal(t, "private, no-store", a.header.Get("Cache-Control"))
	}
}

// Who is told of a change has it at once, although it was just asked.
func TestSight_AFollowIsSeenAtOnce(t *testing.T) {
	f := newFixture(t)
	require.Equal(t, 200, f.tell("PUT", "/v1/items", `{"item_id":"1","item_type":"post","owner_id":"7","visibility":"followers"}`).status)
	for range 2 {
		for method, status := range map[string]int{"PUT": 200, "DELETE": 404} {
			require.Equal(t, 200, f.tell(method, "/v1/follows", `{"follower_id":"9","followee_id":"7"}`).status)
			require.Equal(t, status, f.do(f.request("POST", "/v1/like", goodLike, f.token(9, auth.User))).status)
		}
	}
}

// Of a batch, only what is to be seen reaches the service, at its position.
func TestSight_BatchesAreCheckedEntryByEntry(t *testing.T) {
	f := newFixture(t)
	require.Equal(t, 200, f.tell("PUT", "/v1/items", `{"item_id":"2","item_type":"post","owner_id":"7","visibility":"private"}`).status)
	op := func(user, item string) string {
		return `{"user_id":"` + user + `","item_id":"` + item + `","item_type":"post","action":"like"}`
	}
	a := f.tell("POST", "/v1/likes:batch", `{"ops":[`+strings.Join([]string{op("9", "1"), op("9", "2"), op("7", "2"), op("9", "3")}, ",")+`]}`)
	require.Equal(t, 200, a.status)
	results := as[[]any](t, a.body["results"])
	for i, status := range []any{"liked", nil, "liked", "liked"} {
		require.Equal(t, status, as[map[string]any](t, results[i])["status"], "%d: %s", i, a.raw)
	}
	require.Equal(t, "not_found", as[map[string]any](t, results[1])["error"])
	require.Len(t, f.service.after, 3, "what may not be liked reached the service")
	none := f.tell("POST", "/v1/likes:batch", `{"ops":[`+op("9", "2")+`]}`)
	require.Equal(t, 200, none.status, "it is nobody's fault but the caller's")
	require.Len(t, f.service.after, 3)
}

func TestSight_MeLikesIsLeftOutOfAndPagesGoOn(t *testing.T) {
	f := newFixture(t)
	for _, item := range []string{"1", "2", "3", "4"} {
		f.like("POST", 9, item)
	}
	for _, item := range []string{"2", "4"} {
		require.Equal(t, 200, f.tell("PUT", "/v1/items", `{"item_id":"`+item+`","item_type":"post","state":"hidden"}`).status)
	}
	var got []string
	cursor := ""
	for pages := 1; ; pages++ {
		a := f.do(f.request("GET", "/v1/me/likes?limit=1"+cursor, "", f.token(9, auth.User)))
		require.Equal(t, 200, a.status)
		for _, l := range as[[]any](t, a.body["likes"]) {
			got = append(got, as[string](t, as[map[string]any](t, l)["item_id"]))
		}
		if a.body["next_cursor"] == "" {
			require.Equal(t, 4, pages)
			break
		}
		cursor = "&cursor=" + as[string](t, a.body["next_cursor"])
	}
	require.Equal(t, []string{"3", "1"}, got)
}
