package tiertest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

// viewer is one kind of caller in the matrix.
type viewer struct {
	name string
	client
	// user is who likes: the token's, or the one that the service names; 0: nobody.
	user likes.UserID
	// named: the service names the user in each call.
	named bool
}

// web92 is every level of visibility with every kind of viewer and every route: who
// may read may like, and nobody else.
func web92(w *webCase) {
	owner, stranger, follower, blocked, blocker := w.newUser(), w.newUser(), w.newUser(), w.newUser(), w.newUser()
	w.tell(http.MethodPut, "/v1/follows", fmt.Sprintf(`{"follower_id":"%d","followee_id":"%d"}`, follower, owner))
	for _, u := range []likes.UserID{blocked, blocker} { // blocks go before follows
		w.tell(http.MethodPut, "/v1/follows", fmt.Sprintf(`{"follower_id":"%d","followee_id":"%d"}`, u, owner))
	}
	w.tell(http.MethodPut, "/v1/blocks", fmt.Sprintf(`{"blocker_id":"%d","blocked_id":"%d"}`, owner, blocked))
	w.tell(http.MethodPut, "/v1/blocks", fmt.Sprintf(`{"blocker_id":"%d","blocked_id":"%d"}`, blocker, owner))
	viewers := []viewer{
		{"anonymous", w.anybody(0), 0, false},
		{"stranger", w.as(stranger, 0), stranger, false},
		{"follower", w.as(follower, 0), follower, false},
		{"owner", w.as(owner, 0), owner, false},
		{"blocked", w.as(blocked, 0), blocked, false},
		{"blocker", w.as(blocker, 0), blocker, false},
		{"service", w.service(), 0, false},
		{"service as owner", w.service(), owner, true},
		{"service as stranger", w.service(), stranger, true},
		{"service as blocked", w.service(), blocked, true},
	}
	sees := func(names ...string) map[string]bool {
		in := map[string]bool{}
		for _, name := range names {
			in[name] = true
		}
		return in
	}
	owners := []string{"owner", "service as owner", "service"}
	levels := []struct {
		name, members string
		sees          map[string]bool
	}{
		{"public", `"visibility":"public"`, sees(append(owners, "anonymous", "stranger", "service as stranger", "follower")...)},
		{"followers", `"visibility":"followers"`, sees(append(owners, "follower")...)},
		{"private", `"visibility":"private"`, sees(owners...)},
		{"private, counts hidden", `"visibility":"private","counts":"hidden"`, sees(owners...)},
		{"hidden", `"state":"hidden"`, sees("service")},
		{"deleted", `"state":"deleted"`, sees()},
	}
	for _, level := range levels {
		for _, v := range viewers {
			item := w.newItem()
			if v.user != 0 { // while anybody may
				w.mutate(w.as(v.user, 0), http.MethodPost, item)
			}
			w.owned(item, owner, ","+level.members)
			w.sees(v, item, level.name, level.sees[v.name])
		}
	}
}

// sees requires that all routes let the viewer at the item, or none.
func (w *webCase) sees(v viewer, item likes.ItemID, level string, want bool) {
	w.Helper()
	name := level + " to " + v.name
	if v.user != 0 {
		path := "/v1/me/likes?limit=1000"
		if v.named {
			path += fmt.Sprintf("&user_id=%d", v.user)
		}
		a, err := v.do(w.Context(), http.MethodGet, path, "")
		require.NoError(w, err)
		require.Equal(w, http.StatusOK, a.status)
		require.Equal(w, want, strings.Contains(string(a.body), `"item_id":"`+strconv.FormatInt(int64(item), 10)+`"`), "me/likes: %s", name)
	}
	edges := map[string]bool{"like": true, "unlike": true, "save": true, "unsave": true, "has": true, "has by body": true}
	for _, call := range itemCalls(item) {
		switch {
		case call.needsToken && v.token == "", v.user == 0 && edges[call.name]:
			continue // it needs a user
		case v.named:
			call = call.asUser(v.user)
		}
		a, err := v.do(w.Context(), call.method, call.path, call.body)
		require.NoError(w, err)
		batch := strings.Contains(call.name, "counts") && call.name != "all counts" || strings.HasPrefix(call.name, "has")
		if !batch && !want {
			require.Equal(w, http.StatusNotFound, a.status, "%s: %s: %s", call.name, name, a.body)
			continue
		}
		require.Equal(w, http.StatusOK, a.status, "%s: %s: %s", call.name, name, a.body)
		require.Equal(w, want, !strings.Contains(string(a.body), "not_found"), "%s: %s: %s", call.name, name, a.body)
	}
	if v.user == 0 {
		return
	}
	// A batch checks every operation as its own user.
	other := w.newItem()
	ops := fmt.Sprintf(`{"ops":[{"user_id":"%d","item_id":"%d","item_type":"post","action":"like"},{"user_id":"%d","item_id":"%d","item_type":"post","action":"like"}]}`,
		v.user, item, v.user, other)
	a := w.tell(http.MethodPost, "/v1/likes:batch", ops)
	require.Equal(w, want, !strings.Contains(string(a.body), "not_found"), "batch: %s: %s", name, a.body)
	require.Contains(w, string(a.body), `"user_liked":true`, "the other operation of the batch")
	require.Equal(w, want, strings.HasPrefix(string(a.body), `{"results":[{"status":`), "batch: %s: %s", name, a.body)
}
