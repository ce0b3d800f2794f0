package tiertest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

// HTTP runs the cases of the table that are about the wire against running
// processes. It assumes the documented API and the default item types, nothing
// else.
func HTTP(t *testing.T, target HTTPTarget) {
	w := newWeb(t, target)
	for _, k := range httpCases() {
		t.Run(fmt.Sprintf("case %d over HTTP", k.number), func(t *testing.T) {
			Case(t, k.number)
			k.web(&webCase{T: t, web: w})
		})
	}
}

// web is what all cases over HTTP share.
type web struct {
	HTTPTarget
	http   *http.Client
	tokens tokens
	item   atomic.Int64
	user   atomic.Int64
}

func newWeb(t *testing.T, target HTTPTarget) *web {
	t.Helper()
	w := &web{HTTPTarget: target, http: newHTTPClient(), tokens: tokens{make: target.UserToken}}
	t.Cleanup(w.http.CloseIdleConnections)
	if w.Items == 0 {
		w.Items = 1_000_000
	}
	w.item.Store(int64(w.Items))
	return w
}

// webCase is one case at work.
type webCase struct {
	T
	*web
}

// httpCase shows one row of the table over HTTP.
type httpCase struct {
	number int
	web    func(*webCase)
}

func httpCases() []httpCase {
	return []httpCase{
		{1, web1},
		{2, web2},
		{6, web6},
		{9, web9},
		{11, web11},
		{13, web13},
		{14, web14},
		{17, web17},
		{19, web19},
		{22, web22},
		{23, web23},
		{24, web24},
		{26, web26},
		{35, web35},
		{37, web37},
		{38, web38},
		{41, web41},
		{45, web45},
		{90, web90},
		{91, web91},
		{92, web92},
		{94, web94},
		{97, web97},
		{98, web98},
		{102, web102},
		{106, web106},
	}
}

func (w *webCase) newItem() likes.ItemID { return likes.ItemID(w.item.Add(1)) }
func (w *webCase) newUser() likes.UserID { return likes.UserID(w.user.Add(1)) }

// as returns a client of the user at the n-th process.
func (w *webCase) as(u likes.UserID, n int) client {
	return client{http: w.http, base: w.BaseURLs[n%len(w.BaseURLs)], token: w.tokens.of(u)}
}

// anybody returns a client without a token.
func (w *webCase) anybody(n int) client {
	return client{http: w.http, base: w.BaseURLs[n%len(w.BaseURLs)]}
}

func (w *webCase) service() client {
	return client{http: w.http, base: w.BaseURLs[0], token: w.ServiceToken}
}

// mutate sends POST or DELETE /v1/like and requires a 200.
func (w *webCase) mutate(c client, method string, item likes.ItemID) reply {
	w.Helper()
	a, err := c.do(w.Context(), method, "/v1/like", likeBody(item))
	require.NoError(w, err)
	r, err := a.ok()
	require.NoError(w, err)
	return r
}

func (w *webCase) count(item likes.ItemID) int64 {
	w.Helper()
	var n int64
	for i := range w.BaseURLs { // all processes agree
		counts, err := w.anybody(i).counts(w.Context(), []likes.ItemID{item})
		require.NoError(w, err)
		require.True(w, i == 0 || n == counts[item], "processes differ about item %d: %d and %d", item, n, counts[item])
		n = counts[item]
	}
	return n
}

// atOnce sends the same request n times at once over all processes and returns
// the statuses and how many answers said that they changed something.
func (w *webCase) atOnce(n int, u likes.UserID, method string, item likes.ItemID) (statuses map[int]int, changed int) {
	w.Helper()
	w.tokens.of(u)
	answers := make(chan answer, n)
	errs := make(chan error, n)
	for i := range n {
		go func() {
			a, err := w.as(u, i).do(w.Context(), method, "/v1/like", likeBody(item))
			answers <- a
			errs <- err
		}()
	}
	statuses = map[int]int{}
	for range n {
		require.NoError(w, <-errs)
		a := <-answers
		statuses[a.status]++
		r, err := a.reply()
		require.NoError(w, err)
		if r.Status == "liked" || r.Status == "unliked" {
			changed++
		}
	}
	return statuses, changed
}

func web1(w *webCase) {
	const copies = 50
	u, item := w.newUser(), w.newItem()
	for _, method := range []string{http.MethodPost, http.MethodDelete} {
		statuses, changed := w.atOnce(copies, u, method, item)
		require.Equal(w, map[int]int{http.StatusOK: copies}, statuses)
		require.LessOrEqual(w, changed, 1)
		require.Equal(w, method == http.MethodPost, w.count(item) == 1)
	}
	require.Zero(w, w.count(item))
}

func web2(w *webCase) {
	u, item := w.newUser(), w.newItem()
	w.atOnce(200, u, http.MethodPost, item)
	for i := range w.BaseURLs {
		got, err := w.as(u, i).likers(w.Context(), item, 10)
		require.NoError(w, err)
		require.Equal(w, []likes.UserID{u}, got)
	}
	require.Equal(w, int64(1), w.count(item))
}

func web6(w *webCase) {
	u, item := w.newUser(), w.newItem()
	for i, key := range []string{"first", "second"} {
		a, err := w.as(u, i).do(w.Context(), http.MethodPost, "/v1/like", likeBody(item), "Idempotency-Key", key, "X-Request-Id", key)
		require.NoError(w, err)
		_, err = a.ok()
		require.NoError(w, err)
	}
	require.Equal(w, int64(1), w.count(item))
}

func web9(w *webCase) {
	u, item := w.newUser(), w.newItem()
	require.Equal(w, "liked", w.mutate(w.as(u, 0), http.MethodPost, item).Status)
	require.Equal(w, "already_liked", w.mutate(w.as(u, 1), http.MethodPost, item).Status)
	require.Equal(w, "unliked", w.mutate(w.as(u, 0), http.MethodDelete, item).Status)
	require.Equal(w, "not_liked", w.mutate(w.as(u, 1), http.MethodDelete, item).Status)
	r := w.mutate(w.as(u, 0), http.MethodDelete, item)
	require.Equal(w, "not_liked", r.Status)
	require.Zero(w, r.Count)
	require.False(w, r.UserLiked)
	require.Zero(w, w.count(item))
}

func web13(w *webCase) {
	u, item := w.newUser(), w.newItem()
	for i := range 100 {
		c := w.as(u, i)
		c.http = newHTTPClient()
		w.mutate(c, http.MethodPost, item)
		c.http.CloseIdleConnections()
	}
	require.Equal(w, int64(1), w.count(item))
}

func web14(w *webCase) {
	const copies = 100
	statuses, _ := w.atOnce(copies, w.newUser(), http.MethodPost, w.newItem())
	for status, n := range statuses {
		require.Less(w, status, http.StatusInternalServerError, "%d answers", n)
	}
}

func web17(w *webCase) {
	u, never, known := w.newUser(), w.newItem(), w.newItem()
	w.mutate(w.as(w.newUser(), 0), http.MethodPost, known)
	a, b := w.mutate(w.as(u, 0), http.MethodDelete, never), w.mutate(w.as(u, 0), http.MethodDelete, known)
	require.Equal(w, "not_liked", a.Status)
	require.Equal(w, "not_liked", b.Status)
	require.Zero(w, w.count(never))
	require.Equal(w, int64(1), w.count(known))
}

func web19(w *webCase) {
	u, item := w.newUser(), w.newItem()
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		for _, query := range []string{"", fmt.Sprintf("?item_id=%d&item_type=post&type=post&user_id=%d&action=like", item, u)} {
			a, err := w.as(u, 0).do(w.Context(), method, "/v1/like"+query, "")
			require.NoError(w, err)
			require.Equal(w, http.StatusMethodNotAllowed, a.status)
			require.NotEmpty(w, a.header.Get("Allow"))
		}
	}
	require.Zero(w, w.count(item))
}

func web26(w *webCase) {
	const n, batch, parallel = 5000, 50, 8
	item := w.newItem()
	first := likes.UserID(w.user.Add(n)) - n + 1
	errs := make(chan error, parallel)
	for p := range parallel {
		go func() {
			for from := p * batch; from < n; from += parallel * batch {
				ops := make([]string, batch)
				for i := range ops {
					ops[i] = fmt.Sprintf(`{"user_id":"%d","item_id":"%d","item_type":"post","action":"like"}`, first+likes.UserID(from+i), item)
				}
				c := w.service()
				c.base = w.BaseURLs[p%len(w.BaseURLs)]
				a, err := c.do(w.Context(), http.MethodPost, "/v1/likes:batch", `{"ops":[`+strings.Join(ops, ",")+`]}`)
				if err == nil {
					_, err = a.ok()
				}
				if err != nil || strings.Contains(string(a.body), `"error"`) {
					errs <- fmt.Errorf("batch: %w: %.200s", err, a.body)
					return
				}
			}
			errs <- nil
		}()
	}
	for range parallel {
		require.NoError(w, <-errs)
	}
	require.Equal(w, int64(n), w.count(item))
}

func web35(w *webCase) {
	item := w.newItem()
	for range 7 {
		w.mutate(w.as(w.newUser(), 0), http.MethodPost, item)
	}
	a, err := w.anybody(0).do(w.Context(), http.MethodGet, fmt.Sprintf("/v1/count?item_id=%d&item_type=post", item), "")
	require.NoError(w, err)
	r, err := a.ok()
	require.NoError(w, err)
	require.JSONEq(w, `{"likes":7}`, string(r.Counts))
	require.Equal(w, int64(7), w.count(item))
	got, err := w.as(1, 0).likers(w.Context(), item, 3)
	require.NoError(w, err)
	require.Len(w, got, 7)
	require.True(w, slices.IsSorted(got))
}

func web45(w *webCase) {
	item := w.newItem()
	for n := range 5 {
		u := w.newUser()
		r := w.mutate(w.as(u, n), http.MethodPost, item)
		require.Equal(w, int64(n+1), r.Count, "the answer's count includes this like")
		require.True(w, r.UserLiked)
		require.Equal(w, r.Count, w.count(item))
	}
}
