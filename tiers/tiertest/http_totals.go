package tiertest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

// The cases over HTTP about what a user likes and what a user's items have.

// totals are what GET /v1/users/{id}/totals answers.
type totals struct {
	Given    map[string]int64 `json:"given"`
	Received map[string]int64 `json:"received"`
	Hidden   map[string]int64 `json:"received_hidden"`
}

func (w *webCase) totals(u likes.UserID) totals {
	w.Helper()
	a := w.tell(http.MethodGet, fmt.Sprintf("/v1/users/%d/totals", u), "")
	var t totals
	require.NoError(w, json.Unmarshal(a.body, &t))
	for _, sums := range []map[string]int64{t.Given, t.Received, t.Hidden} {
		for name, n := range sums {
			require.GreaterOrEqual(w, n, int64(0), "%s of user %d", name, u)
		}
	}
	return t
}

// received requires what an owner's items have together.
func (w *webCase) received(owner likes.UserID, want int64) {
	w.Helper()
	require.Equal(w, want, w.totals(owner).Received["likes"])
}

// ownedWith returns a new item of an owner that n users like.
func (w *webCase) ownedWith(owner likes.UserID, n int) likes.ItemID {
	w.Helper()
	item := w.newItem()
	w.owned(item, owner, "")
	w.liked(item, n)
	return item
}

// web11 counts what a user gave beside what a user likes, under toggles.
func web11(w *webCase) {
	const items, toggles = 6, 60
	u, first := w.newUser(), w.newItem()
	all := []likes.ItemID{first}
	for range items - 1 {
		all = append(all, w.newItem())
	}
	for range toggles {
		method := http.MethodPost
		if rand.IntN(2) == 0 {
			method = http.MethodDelete
		}
		w.mutate(w.as(u, 0), method, all[rand.IntN(items)])
		has, err := w.as(u, 0).has(w.Context(), all...)
		require.NoError(w, err)
		var edges int64
		for _, liked := range has {
			if liked {
				edges++
			}
		}
		require.Equal(w, edges, w.totals(u).Given["likes"])
	}
}

// web22 hides an item and then deletes it: the total moves once.
func web22(w *webCase) {
	owner := w.newUser()
	item := w.ownedWith(owner, 5)
	w.ownedWith(owner, 7)
	w.received(owner, 12)
	w.now(item, `"state":"hidden"`)
	w.received(owner, 7)
	w.tell(http.MethodDelete, "/v1/items", likeBody(item))
	w.received(owner, 7)
	w.tell(http.MethodDelete, "/v1/items", likeBody(item))
	w.received(owner, 7)
	w.now(item, `"state":"live"`)
	w.received(owner, 12)
}

// web24 deletes one of three items: the others and the owner's total are right.
func web24(w *webCase) {
	owner := w.newUser()
	gone, seven, nine := w.ownedWith(owner, 5), w.ownedWith(owner, 7), w.ownedWith(owner, 9)
	w.received(owner, 21)
	w.tell(http.MethodDelete, "/v1/items", likeBody(gone))
	w.received(owner, 16)
	w.shows(w.anybody(0), seven, 7)
	w.shows(w.anybody(0), nine, 9)
	// What hides its counts is in a sum of its own, or the sum would tell them.
	w.now(nine, `"counts":"hidden"`)
	w.received(owner, 7)
	require.Equal(w, int64(9), w.totals(owner).Hidden["likes"])
}

// web38 deletes a liked item: its author's and its likers' totals follow.
func web38(w *webCase) {
	owner := w.newUser()
	item := w.newItem()
	w.owned(item, owner, "")
	likers := w.liked(item, 3)
	for _, u := range likers {
		w.mutate(w.as(u, 0), http.MethodPost, w.newItem())
		require.Equal(w, int64(2), w.totals(u).Given["likes"])
	}
	w.received(owner, 3)
	w.tell(http.MethodDelete, "/v1/items", likeBody(item))
	w.received(owner, 0)
	for _, u := range likers {
		require.Equal(w, int64(1), w.totals(u).Given["likes"])
	}
}

// web41 reads its own like at once, and looks at who may keep the answers.
func web41(w *webCase) {
	u, item := w.newUser(), w.newItem()
	c := w.as(u, 0)
	calls := itemCalls(item)
	for _, method := range []string{http.MethodPost, http.MethodDelete} {
		like, err := c.do(w.Context(), method, "/v1/like", likeBody(item))
		require.NoError(w, err)
		require.Equal(w, http.StatusOK, like.status)
		require.NotEmpty(w, like.header.Get("Like-Version"))
		liked := method == http.MethodPost
		for n := range w.BaseURLs { // with the version on any of them
			c := w.as(u, n)
			a, err := c.do(w.Context(), http.MethodGet, calls["has"].path, "", "Like-Min-Version", like.header.Get("Like-Version"))
			require.NoError(w, err)
			r, err := a.ok()
			require.NoError(w, err)
			require.Equal(w, map[string]bool{fmt.Sprint(item): liked}, r.Liked)
		}
		w.shows(w.anybody(0), item, map[bool]int64{true: 1, false: 0}[liked])
		w.shows(c, item, map[bool]int64{true: 1, false: 0}[liked])
	}
	for _, call := range calls {
		for _, c := range []client{w.as(u, 0), w.anybody(0)} {
			if c.token == "" && call.needsToken {
				continue
			}
			a, err := c.do(w.Context(), call.method, call.path, call.body)
			require.NoError(w, err)
			require.Equal(w, http.StatusOK, a.status, call.name)
			shared := c.token == "" && (call.name == "count" || call.name == "all counts")
			require.Equal(w, shared, a.header.Get("Etag") != "" && a.header.Get("Vary") != "", "%s: %v", call.name, a.header)
			if !shared {
				require.Equal(w, "private, no-store", a.header.Get("Cache-Control"), call.name)
				continue
			}
			require.Contains(w, a.header.Get("Cache-Control"), "public, s-maxage=", call.name)
			require.Equal(w, "Authorization, Like-Min-Version", a.header.Get("Vary"), call.name)
		}
	}
}
