package httpapi

import (
	"maps"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/auth"
	"likectl/pkg/likes"
)

// The callers of the table: two users, one whom the owner of item 1 has blocked, a
// backend, an administrator, nobody.
const (
	userA, userB     = likes.UserID(101), likes.UserID(102)
	backend, manager = likes.UserID(103), likes.UserID(104)
	owner, blocked   = likes.UserID(105), likes.UserID(106)
)

// who is the status that each caller gets.
type who map[string]int

// TestAccess is every route with every caller: what is answered, and whose likes
// the call has changed. Each cell has an API of its own, in which A and B like
// item 1 and user 7 likes nothing. Where the table does not say what the blocked
// user gets, it is what A gets.
func TestAccess(t *testing.T) {
	const (
		item   = `"item_id":"1","item_type":"post"`
		items  = `"item_ids":["1"],"item_type":"post"`
		as7    = `,"user_id":"7"`
		asA    = `,"user_id":"101"`
		query  = "?item_id=1&item_type=post"
		queryS = "?item_ids=1&item_type=post"
		op     = `{"ops":[{"user_id":"101","item_id":"1","item_type":"post","action":"unlike"},` +
			`{"user_id":"7","item_id":"1","item_type":"post","action":"like"}]}`
	)
	all := func(status int) who {
		return who{"A": status, "B": status, "service": status, "admin": status, "none": status}
	}
	own := who{"A": 200, "B": 200, "service": 400, "admin": 400, "none": 401}
	ownSeen := who{"A": 200, "B": 200, "blocked": 404, "service": 400, "admin": 400, "none": 401}
	seen := who{"A": 200, "B": 200, "blocked": 404, "service": 200, "admin": 200, "none": 200}
	seen4 := who{"A": 200, "B": 200, "blocked": 404, "service": 200, "admin": 200, "none": 401}
	named := who{"A": 400, "B": 400, "service": 200, "admin": 200, "none": 401}
	above := who{"A": 403, "B": 403, "service": 200, "admin": 200, "none": 401}
	covered := map[string]bool{}
	kept := []likes.UserID{userA, userB}
	for _, row := range []struct {
		method, path, query, body string
		want                      who
		// after are the likers of item 1 after a call that was allowed, by caller;
		// after every other call they are A and B.
		after map[string][]likes.UserID
		says  map[string]string // in the answer
	}{
		{"POST", "/v1/like", "", "{" + item + "}", ownSeen, nil, map[string]string{"A": "already_liked", "B": "already_liked"}},
		{
			"POST", "/v1/like", "", "{" + item + as7 + "}", named,
			map[string][]likes.UserID{"service": {7, userA, userB}, "admin": {7, userA, userB}},
			nil,
		},
		{"DELETE", "/v1/like", "", "{" + item + "}", ownSeen, map[string][]likes.UserID{"A": {userB}, "B": {userA}}, nil},
		{
			"DELETE", "/v1/like", "", "{" + item + asA + "}", named,
			map[string][]likes.UserID{"service": {userB}, "admin": {userB}},
			nil,
		},
		{"POST", "/v1/save", "", "{" + item + "}", ownSeen, nil, map[string]string{"A": `"saved"`, "B": `"saved"`}},
		{"POST", "/v1/save", "", "{" + item + as7 + "}", named, nil, map[string]string{"service": `"saved"`, "admin": `"saved"`}},
		{"DELETE", "/v1/save", "", "{" + item + "}", ownSeen, nil, map[string]string{"A": "not_saved", "B": "not_saved"}},
		{"DELETE", "/v1/save", "", "{" + item + asA + "}", named, nil, map[string]string{"service": "not_saved", "admin": "not_saved"}},
		{"POST", "/v1/view", "", "{" + item + "}", seen, nil, map[string]string{"A": "counted", "service": "counted", "none": "counted"}},
		{"POST", "/v1/share", "", "{" + item + "}", seen4, nil, map[string]string{"A": "counted", "service": "counted"}},
		{"POST", "/v1/share", "", "{" + item + as7 + "}", named, nil, map[string]string{"service": "counted", "admin": "counted"}},
		{"GET", "/v1/me/likes", "", "", own, nil, map[string]string{"A": `"item_id":"1"`, "B": `"item_id":"1"`}},
		{"GET", "/v1/me/likes", "?user_id=7", "", named, nil, map[string]string{"service": `"likes":[]`, "admin": `"likes":[]`}},
		{"GET", "/v1/count", query, "", seen, nil, nil},
		{"GET", "/v1/counts", queryS, "", all(200), nil, map[string]string{"A": `"likes":2`, "blocked": `"counts":{},"errors":{"post:1":{"error":"not_found"`}},
		{
			"POST", "/v1/counts", "", `{"items":[{` + item + `}]}`, all(200), nil,
			map[string]string{"none": `"likes":2`, "blocked": `"counts":{},"errors":{"post:1":{"error":"not_found"`},
		},
		{"GET", "/v1/has_liked", queryS, "", own, nil, map[string]string{"A": `"1":true`, "B": `"1":true`, "blocked": `"not_found"`}},
		{"GET", "/v1/has_liked", queryS + "&user_id=7", "", named, nil, map[string]string{"service": `"1":false`, "admin": `"1":false`}},
		{"GET", "/v1/has_liked", queryS + "&user_id=101", "", named, nil, map[string]string{"service": `"1":true`, "admin": `"1":true`}},
		{"POST", "/v1/has_liked", "", "{" + items + "}", own, nil, map[string]string{"A": `"1":true`, "B": `"1":true`, "blocked": `"not_found"`}},
		{"POST", "/v1/has_liked", "", "{" + items + as7 + "}", named, nil, map[string]string{"service": `"1":false`, "admin": `"1":false`}},
		{"GET", "/v1/likers", query, "", seen4, nil, nil},
		{"GET", "/v1/likers", query + "&user_id=7", "", named, nil, map[string]string{"service": `"user_id":"102"`}},
		{"GET", "/v1/count", query + "&user_id=7", "", who{"A": 400, "B": 400, "service": 200, "admin": 200, "none": 400}, nil, nil},
		{"GET", "/v1/count", query + "&user_id=106", "", who{"service": 404, "admin": 404}, nil, nil},
		{"PUT", "/v1/items", "", "{" + item + `,"visibility":"private"}`, above, nil, map[string]string{"service": `"visibility":"private"`}},
		{"DELETE", "/v1/items", "", "{" + item + "}", above, nil, map[string]string{"service": `"state":"deleted"`}},
		{"PUT", "/v1/blocks", "", `{"blocker_id":"1","blocked_id":"2"}`, above, nil, map[string]string{"service": `{"changed":true}`}},
		{"DELETE", "/v1/blocks", "", "{" + item + `,"blocked_id":"2"}`, above, nil, map[string]string{"service": `{"changed":false}`}},
		{"PUT", "/v1/follows", "", `{"follower_id":"1","followee_id":"2"}`, above, nil, map[string]string{"service": `{"changed":true}`}},
		{"DELETE", "/v1/follows", "", `{"follower_id":"1","followee_id":"2"}`, above, nil, map[string]string{"service": `{"changed":false}`}},
		{"GET", "/v1/users/105/totals", "", "", above, nil, map[string]string{"service": `"received":{"likes":2,`}},
		{"POST", "/v1/likes:batch", "", op, above, map[string][]likes.UserID{"service": {7, userB}, "admin": {7, userB}}, nil},
		{"GET", "/openapi.json", "", "", all(200), nil, nil},
		{"GET", "/healthz", "", "", all(200), nil, nil},
		{"GET", "/readyz", "", "", all(200), nil, nil},
	} {
		if _, said := row.want["blocked"]; !said && row.want["A"] != 0 {
			row.want = maps.Clone(row.want)
			row.want["blocked"] = row.want["A"]
		}
		for caller, status := range row.want {
			name := row.method + " " + row.path + row.query + " " + row.body + " as " + caller
			f := newFixture(t)
			f.like("POST", userA, "1")
			f.like("POST", userB, "1")
			require.Equal(t, 200, f.do(f.request("PUT", "/v1/items", "{"+item+`,"owner_id":"105"}`, f.token(backend, auth.Service))).status)
			require.Equal(t, 200, f.do(f.request("PUT", "/v1/blocks", `{"blocker_id":"105","blocked_id":"106"}`, f.token(backend, auth.Service))).status)
			f.service.calls = 0
			token := map[string]string{
				"A": f.token(userA, auth.User), "B": f.token(userB, auth.User), "blocked": f.token(blocked, auth.User),
				"service": f.token(backend, auth.Service), "admin": f.token(manager, auth.Admin),
			}[caller]
			rec := httptest.NewRecorder()
			req := f.request(row.method, row.path+row.query, row.body, token)
			f.api.ServeHTTP(rec, req)
			conforms(t, req, rec)
			require.Equal(t, status, rec.Code, "%s: %s", name, rec.Body)
			require.Contains(t, rec.Body.String(), row.says[caller], name)
			if status >= 400 {
				require.Zero(t, f.service.calls, "%s reached the service", name)
			}
			want, changed := row.after[caller]
			if !changed {
				want = kept
			}
			page, _, err := f.service.Likers(t.Context(), likes.Likes, likes.Item{Type: 1, ID: 1}, "", 10)
			require.NoError(t, err)
			var got []likes.UserID
			for _, m := range page {
				got = append(got, m.Edge.User)
			}
			slices.Sort(got)
			require.Equal(t, want, got, name)
		}
		covered[row.method+" "+templated(spec(), row.path)] = true
	}
	for _, route := range routesInTheSource(t) {
		require.True(t, covered[route], "%s is not in the table", route)
	}
}

// routesInTheSource returns the routes that New registers, so that a new one
// without rows in the table is noticed.
func routesInTheSource(t *testing.T) []string {
	t.Helper()
	source, err := os.ReadFile("api.go")
	require.NoError(t, err)
	var routes []string
	for _, m := range regexp.MustCompile(`\{"([A-Z]+)", "(/[^"]+)", (?:public|anyone|caller|service),`).FindAllStringSubmatch(string(source), -1) {
		routes = append(routes, m[1]+" "+m[2])
	}
	require.Contains(t, routes, "POST /v1/likes:batch", "routes are written in another way now")
	return routes
}
