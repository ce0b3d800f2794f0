package httpapi

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/auth"
	"likectl/pkg/likes"
	"likectl/pkg/memory"
)

// broken fails every call, by an error or a panic in a function that has the id.
type broken struct {
	likes.Service
	fail func(likes.UserID) error
}

func (s *broken) Apply(_ context.Context, ms []likes.Mutation) []likes.Result {
	out := make([]likes.Result, len(ms))
	for i, m := range ms {
		out[i].Err = s.fail(m.Edge.User)
	}
	return out
}

func (s *broken) Counts(_ context.Context, _ likes.Counter, items []likes.Item, _ []likes.Version) []likes.Count {
	out := make([]likes.Count, len(items))
	for i := range out {
		out[i].Err = s.fail(0)
	}
	return out
}

func (s *broken) Has(_ context.Context, _ likes.Counter, u likes.UserID, items []likes.Item, _ []likes.Version) []likes.Membership {
	out := make([]likes.Membership, len(items))
	for i := range out {
		out[i].Err = s.fail(u)
	}
	return out
}

func (s *broken) Likers(context.Context, likes.Counter, likes.Item, likes.Cursor, int) ([]likes.Member, likes.Cursor, error) {
	return nil, "", s.fail(0)
}

func (s *broken) LikedBy(_ context.Context, _ likes.Counter, u likes.UserID, _ likes.Cursor, _ int) ([]likes.Member, likes.Cursor, error) {
	return nil, "", s.fail(u)
}

// No line of the log has a user's id, whatever fails on whichever route; those of
// calls that act for one user have the user's hash.
func TestLog_NamesUsersByTheirHashOnly(t *testing.T) {
	const user, served, subject = likes.UserID(4711471147114711471), likes.UserID(4822582258225822582), likes.UserID(4933693369336933693)
	hashes := map[likes.UserID]string{user: "hash-of-user", served: "hash-of-served"}
	kinds := map[string]func(likes.UserID) error{
		"panic": func(u likes.UserID) error { panic(strings.Repeat("x", int(u%3)+1)) },
		"other": func(likes.UserID) error { return fmt.Errorf("nobody knows this error") },
	}
	for _, row := range table {
		kinds[row.code] = func(likes.UserID) error { return row.kind }
	}
	const item = `"item_id":"1","item_type":"post"`
	named := `,"user_id":"` + strconv.FormatInt(int64(served), 10) + `"`
	query := "?item_id=1&item_type=post"
	covered := map[string]bool{}
	for kind, fail := range kinds {
		f := newFixture(t, func(c *Config) {
			c.Service = &broken{Service: memory.New(), fail: fail}
			c.UserHash = func(u likes.UserID) string { return hashes[u] }
		})
		f.undocumented = true
		for _, r := range []struct{ route, query, body, more string }{
			{"POST /v1/like", "", "{" + item, named},
			{"DELETE /v1/like", "", "{" + item, named},
			{"POST /v1/save", "", "{" + item, named},
			{"DELETE /v1/save", "", "{" + item, named},
			{"POST /v1/view", "", "{" + item, named},
			{"POST /v1/share", "", "{" + item, named},
			{"GET /v1/count", query, "", ""},
			{"GET /v1/counts", "?item_ids=1&item_type=post", "", ""},
			{"POST /v1/counts", "", `{"items":[{` + item + `}]`, ""},
			{"GET /v1/has_liked", "?item_ids=1&item_type=post", "", "user_id"},
			{"POST /v1/has_liked", "", `{"item_ids":["1"],"item_type":"post"`, named},
			{"GET /v1/likers", query, "", ""},
			{"GET /v1/me/likes", "?limit=7", "", "user_id"},
			{"PUT /v1/items", "", "{" + item, ""},
			{"DELETE /v1/items", "", "{" + item, ""},
			{"PUT /v1/blocks", "", `{"blocker_id":"1","blocked_id":"2"`, ""},
			{"DELETE /v1/blocks", "", `{"blocker_id":"1","blocked_id":"2"`, ""},
			{"PUT /v1/follows", "", `{"follower_id":"1","followee_id":"2"`, ""},
			{"DELETE /v1/follows", "", `{"follower_id":"1","followee_id":"2"`, ""},
			{"GET /v1/users/{id}/totals", "", "", ""},
			{"POST /v1/likes:batch", "", `{"ops":[{` + item + `,"action":"like"` + named + `}]`, ""},
		} {
			covered[r.route] = true
			method, path, _ := strings.Cut(r.route, " ")
			for _, caller := range []struct {
				token string
				as    likes.UserID
			}{{f.token(user, auth.User), user}, {f.token(subject, auth.Service), served}, {f.token(subject, auth.Admin), served}, {"", 0}} {
				query, body := r.query, r.body
				if caller.as == served && r.more == "user_id" {
					query += "&user_id=" + strconv.FormatInt(int64(served), 10)
				} else if caller.as == served {
					body += r.more
				}
				if body != "" {
					body += "}"
				}
				f.api.sparse = [len(table)]sparse{} // every line is wanted
				before := len(f.log.String())
				a := f.do(f.request(method, strings.Replace(path, "{id}", "3", 1)+query, body, caller.token))
				line := f.log.String()[before:]
				unnamed := caller.as == served && (r.more == "") // of no single user
				if a.status == 500 {
					require.NotEmpty(t, line)
				}
				if line != "" && caller.as != 0 && !unnamed {
					require.Contains(t, line, "user="+hashes[caller.as], "%s of %v: %s", r.route, caller.as, line)
				} else {
					require.NotContains(t, line, "user=", "%s: %s", r.route, line)
				}
			}
		}
		for _, id := range []likes.UserID{user, served, subject} {
			require.NotContains(t, f.log.String(), strconv.FormatInt(int64(id), 10), kind)
			require.NotContains(t, strings.ToLower(f.log.String()), strconv.FormatInt(int64(id), 16), kind)
		}
		if kind == "panic" {
			require.Contains(t, f.log.String(), "httpapi.(*broken).", "where it was")
		}
	}
	for name := range operations(spec()) {
		_, path, _ := strings.Cut(name, " ")
		require.True(t, covered[name] || path == "/healthz" || path == "/readyz" || path == "/openapi.json", name)
	}
}

// The oracle's ErrNotYet is logged as well.
func TestLog_AVersionThatIsNotThereNamesNoUser(t *testing.T) {
	other, f := newFixture(t), newFixture(t)
	token := other.like("POST", 4711471147114711471, "1").header.Get("Like-Version")
	f.api.cfg.Limits.MinVersionWait = 1
	a := f.do(f.request("GET", "/v1/count?item_id=1&item_type=post", "", "", "Like-Min-Version", token))
	require.Equal(t, "version_not_reached", a.body["error"])
	require.Contains(t, f.log.String(), "not reached clock")
	require.NotContains(t, f.log.String(), "4711471147114711471")
}

func TestLog_WithoutAHashThereIsNoUser(t *testing.T) {
	f := newFixture(t)
	f.service.fault = func(int) error { return likes.ErrUnavailable }
	f.do(f.request("POST", "/v1/like", goodLike, f.token(77, auth.User)))
	require.Contains(t, f.log.String(), "request failed")
	require.NotContains(t, f.log.String(), "user=")
}
