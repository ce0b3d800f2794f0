package tiertest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

// The cases over HTTP about who may see, and so like, an item. What is told to the
// first process holds there at once, and at the others within a second or so; so
// all of them ask the first, and web91 the others in the end.

// tell sends a change as the product's backend and requires a 200.
func (w *webCase) tell(method, path, body string) answer {
	w.Helper()
	a, err := w.service().do(w.Context(), method, path, body)
	require.NoError(w, err)
	require.Equal(w, http.StatusOK, a.status, "%s %s %s: %s", method, path, body, a.body)
	return a
}

// owned tells of an item with an owner; more are further members.
func (w *webCase) owned(item likes.ItemID, owner likes.UserID, more string) {
	w.Helper()
	w.tell(http.MethodPut, "/v1/items", fmt.Sprintf(`{"item_id":"%d","item_type":"post","owner_id":"%d"%s}`, item, owner, more))
}

// now tells of an item, say `"state":"hidden"`.
func (w *webCase) now(item likes.ItemID, members string) {
	w.Helper()
	w.tell(http.MethodPut, "/v1/items", fmt.Sprintf(`{"item_id":"%d","item_type":"post",%s}`, item, members))
}

// liked lets n users of their own like an item.
func (w *webCase) liked(item likes.ItemID, n int) []likes.UserID {
	w.Helper()
	users := make([]likes.UserID, n)
	for from := 0; from < n; from += likes.MaxApply {
		var ops []string
		for i := from; i < min(n, from+likes.MaxApply); i++ {
			users[i] = w.newUser()
			ops = append(ops, fmt.Sprintf(`{"user_id":"%d","item_id":"%d","item_type":"post","action":"like"}`, users[i], item))
		}
		a := w.tell(http.MethodPost, "/v1/likes:batch", `{"ops":[`+strings.Join(ops, ",")+`]}`)
		require.NotContains(w, string(a.body), `"error"`)
	}
	return users
}

// seenBy returns the count that a client is told at the first process, or the
// status of the refusal.
func (w *webCase) seenBy(c client, item likes.ItemID) (n int64, status int) {
	w.Helper()
	a, err := c.do(w.Context(), http.MethodGet, fmt.Sprintf("/v1/count?item_id=%d&item_type=post", item), "")
	require.NoError(w, err)
	if a.status != http.StatusOK {
		return 0, a.status
	}
	r, err := a.reply()
	require.NoError(w, err)
	_, err = fmt.Sscanf(string(r.Counts), `{"likes":%d}`, &n)
	require.NoError(w, err, "%s", a.body)
	return n, a.status
}

// shows requires a count.
func (w *webCase) shows(c client, item likes.ItemID, want int64) {
	w.Helper()
	n, status := w.seenBy(c, item)
	require.Equal(w, http.StatusOK, status)
	require.Equal(w, want, n)
}

// refuses requires that neither a like nor a read of the item is allowed.
func (w *webCase) refuses(c client, item likes.ItemID) {
	w.Helper()
	_, status := w.seenBy(c, item)
	require.Equal(w, http.StatusNotFound, status)
	a, err := c.do(w.Context(), http.MethodPost, "/v1/like", likeBody(item))
	require.NoError(w, err)
	require.Equal(w, http.StatusNotFound, a.status, "%s", a.body)
}

// web23 hides an item, deletes it, and brings it back: its likes are what they were.
func web23(w *webCase) {
	item, owner := w.newItem(), w.newUser()
	w.owned(item, owner, "")
	u := w.liked(item, 4)[0]
	for _, state := range []string{"hidden", "deleted"} {
		w.now(item, `"state":"`+state+`"`)
		for _, c := range []client{w.anybody(0), w.as(u, 0), w.as(owner, 0)} {
			_, status := w.seenBy(c, item)
			require.Equal(w, http.StatusNotFound, status, state)
		}
		_, status := w.seenBy(w.service(), item)
		require.Equal(w, map[string]int{"hidden": http.StatusOK, "deleted": http.StatusNotFound}[state], status)
	}
	w.tell(http.MethodDelete, "/v1/items", likeBody(item))
	w.now(item, `"state":"live"`)
	for _, c := range []client{w.anybody(0), w.as(u, 0), w.as(owner, 0)} {
		w.shows(c, item, 4)
	}
}

func web37(w *webCase) {
	item := w.newItem()
	users := w.liked(item, 3)
	w.mutate(w.as(users[1], 0), http.MethodDelete, item)
	w.now(item, `"state":"hidden"`)
	w.refuses(w.as(users[0], 0), item)
	w.now(item, `"state":"live"`)
	w.shows(w.anybody(0), item, 2)
	for i, u := range users {
		has, err := w.as(u, 0).has(w.Context(), item)
		require.NoError(w, err)
		require.Equal(w, i != 1, has[item], "user %d", i)
	}
}

// web90 blocks a user from an item, and another from an owner.
func web90(w *webCase) {
	owner, other, fromItem, fromOwner, free := w.newUser(), w.newUser(), w.newUser(), w.newUser(), w.newUser()
	item, sibling, elsewhere := w.newItem(), w.newItem(), w.newItem()
	for i, u := range map[likes.ItemID]likes.UserID{item: owner, sibling: owner, elsewhere: other} {
		w.owned(i, u, "")
	}
	itemBlock := fmt.Sprintf(`{"item_id":"%d","item_type":"post","blocked_id":"%d"}`, item, fromItem)
	userBlock := fmt.Sprintf(`{"blocker_id":"%d","blocked_id":"%d"}`, owner, fromOwner)
	for range 2 { // the second time changes nothing
		w.tell(http.MethodPut, "/v1/blocks", itemBlock)
		w.tell(http.MethodPut, "/v1/blocks", userBlock)
	}
	w.refuses(w.as(fromItem, 0), item)
	w.mutate(w.as(fromItem, 0), http.MethodPost, sibling)
	w.refuses(w.as(fromOwner, 0), item)
	w.refuses(w.as(fromOwner, 0), sibling)
	w.mutate(w.as(fromOwner, 0), http.MethodPost, elsewhere)
	w.mutate(w.as(free, 0), http.MethodPost, item)
	w.mutate(w.as(owner, 0), http.MethodPost, item)
	w.shows(w.anybody(0), item, 2)
	w.shows(w.anybody(0), sibling, 1)
	// Likers leaves out whom the viewer is blocked from, either way.
	likers, err := w.as(fromOwner, 0).likers(w.Context(), elsewhere, 10)
	require.NoError(w, err)
	require.Equal(w, []likes.UserID{fromOwner}, likers)
	w.mutate(w.as(owner, 0), http.MethodPost, elsewhere)
	for viewer, want := range map[likes.UserID][]likes.UserID{fromOwner: {fromOwner}, owner: {owner}, free: {owner, fromOwner}} {
		likers, err := w.as(viewer, 0).likers(w.Context(), elsewhere, 1)
		require.NoError(w, err)
		require.Equal(w, want, likers)
	}
	for range 2 {
		w.tell(http.MethodDelete, "/v1/blocks", itemBlock)
		w.tell(http.MethodDelete, "/v1/blocks", userBlock)
	}
	w.mutate(w.as(fromItem, 0), http.MethodPost, item)
	w.mutate(w.as(fromOwner, 0), http.MethodPost, sibling)
}

// web91 likes a private item as somebody who is not to see it: the answers are, byte
// for byte, those about an item that was deleted, and nothing changes.
func web91(w *webCase) {
	owner, outsider := w.newUser(), w.newUser()
	private, deleted, hidden, blocked := w.newItem(), w.newItem(), w.newItem(), w.newItem()
	for item, more := range map[likes.ItemID]string{
		private: `,"visibility":"private"`, deleted: `,"state":"deleted"`, hidden: `,"state":"hidden"`, blocked: "",
	} {
		w.owned(item, owner, "")
		w.liked(item, 3)
		if item != private {
			w.mutate(w.as(outsider, 0), http.MethodPost, item) // and was seen before
		}
		w.owned(item, owner, more)
	}
	w.tell(http.MethodPut, "/v1/blocks", fmt.Sprintf(`{"blocked_id":"%d","item_id":"%d","item_type":"post"}`, outsider, blocked))
	w.alike(w.as(outsider, 0), private, deleted, hidden, blocked)
	w.alike(w.anybody(0), private, deleted, hidden)
	w.shows(w.as(owner, 0), private, 3)
	// The other processes refuse it, too, as soon as they have asked again.
	for i := range w.BaseURLs {
		require.Eventually(w, func() bool {
			_, status := w.seenBy(w.as(outsider, i), private)
			return status == http.StatusNotFound
		}, patience, 50*time.Millisecond)
	}
}

// alike requires that all routes answer the same about all the items, but for the
// items' ids: status, headers and body.
func (w *webCase) alike(c client, items ...likes.ItemID) {
	w.Helper()
	for _, call := range itemCalls(0) {
		if c.token == "" && call.needsToken || call.serviceOnly {
			continue
		}
		var first string
		for i, item := range items {
			call := itemCalls(item)[call.name]
			a, err := c.do(w.Context(), call.method, call.path, call.body, "X-Request-Id", "same", "If-None-Match", `*`)
			require.NoError(w, err)
			text := transcript(a, item)
			if i == 0 {
				first = text
				require.Contains(w, text, "not_found", call.name)
			}
			require.Equal(w, first, text, "%s tells items apart", call.name)
		}
	}
}

// itemCall is a call about an item.
type itemCall struct {
	name, method, path, body string
	needsToken, serviceOnly  bool
}

// itemCalls are all of them, by name, as a user's token sends them.
func itemCalls(item likes.ItemID) map[string]itemCall {
	id := strconv.FormatInt(int64(item), 10)
	one, many := "?item_type=post&item_id="+id, "?item_type=post&item_ids="+id
	body := likeBody(item)
	calls := map[string]itemCall{}
	for _, c := range []itemCall{
		{"like", http.MethodPost, "/v1/like", body, true, false},
		{"unlike", http.MethodDelete, "/v1/like", body, true, false},
		{"save", http.MethodPost, "/v1/save", body, true, false},
		{"unsave", http.MethodDelete, "/v1/save", body, true, false},
		{"view", http.MethodPost, "/v1/view", body, false, false},
		{"share", http.MethodPost, "/v1/share", body, true, false},
		{"count", http.MethodGet, "/v1/count" + one, "", false, false},
		{"all counts", http.MethodGet, "/v1/count" + one + "&counter_types=likes,saves,views,shares", "", false, false},
		{"counts", http.MethodGet, "/v1/counts" + many, "", false, false},
		{"counts by body", http.MethodPost, "/v1/counts", `{"items":[` + body + `]}`, false, false},
		{"has", http.MethodGet, "/v1/has_liked" + many, "", true, false},
		{"has by body", http.MethodPost, "/v1/has_liked", `{"item_ids":["` + id + `"],"item_type":"post"}`, true, false},
		{"likers", http.MethodGet, "/v1/likers" + one, "", true, false},
		{"savers", http.MethodGet, "/v1/likers" + one + "&counter=saves", "", true, false},
	} {
		calls[c.name] = c
	}
	return calls
}

// asUser is the call as a service sends it for a user.
func (c itemCall) asUser(u likes.UserID) itemCall {
	if c.body != "" {
		c.body = strings.TrimSuffix(c.body, "}") + fmt.Sprintf(`,"user_id":"%d"}`, u)
	} else {
		c.path += fmt.Sprintf("&user_id=%d", u)
	}
	return c
}

// transcript is all of an answer but the time, with the item's id blotted out.
func transcript(a answer, item likes.ItemID) string {
	h := a.header.Clone()
	h.Del("Date")
	var b strings.Builder
	fmt.Fprintln(&b, a.status)
	_ = h.Write(&b) // into memory
	b.Write(tookPattern.ReplaceAll(a.body, []byte(`"took_ms":0`)))
	return strings.ReplaceAll(b.String(), strconv.FormatInt(int64(item), 10), "ITEM")
}
