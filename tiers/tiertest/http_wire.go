package tiertest

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

// web97 is about ids that a float64 cannot hold: neighbours stay apart.
func web97(w *webCase) {
	u := likes.UserID(math.MaxInt64)
	c := w.as(u, 0)
	const exact = 1 << 53
	liked := []likes.ItemID{exact + 1, math.MaxInt64}
	apart := []likes.ItemID{exact, exact + 2, math.MaxInt64 - 1}
	for _, item := range liked {
		w.mutate(c, http.MethodDelete, item)
		before := w.count(item)
		w.mutate(c, http.MethodPost, item)
		require.Equal(w, before+1, w.count(item))
	}
	has, err := c.has(w.Context(), append(liked, apart...)...)
	require.NoError(w, err)
	for _, item := range liked {
		require.True(w, has[item], "item %d", item)
	}
	for _, item := range apart {
		require.False(w, has[item], "item %d is not the one that was liked", item)
	}
	a, err := c.do(w.Context(), http.MethodGet, fmt.Sprintf("/v1/count?item_id=%d&item_type=post", int64(exact+1)), "")
	require.NoError(w, err)
	require.Contains(w, string(a.body), `"item_id":"9007199254740993"`, "ids leave as strings")
	likers, err := c.likers(w.Context(), exact+1, 10)
	require.NoError(w, err)
	require.Contains(w, likers, u)

	// As a JSON number an id is taken exactly or refused.
	a, err = c.do(w.Context(), http.MethodPost, "/v1/like", `{"item_id":9007199254740993,"item_type":"post"}`)
	require.NoError(w, err)
	if a.status == http.StatusOK {
		require.Contains(w, string(a.body), `"already_liked"`, "a number was rounded")
	} else {
		require.Equal(w, http.StatusBadRequest, a.status)
	}
	for _, id := range []string{
		`"01"`, `"+1"`, `" 1"`, `"1 "`, `"1.0"`, `"1e3"`, `"0x1"`, `"-1"`, `"0"`, `""`, `"٣"`, `"9223372036854775808"`,
		`1.0`, `1e3`, `-1`, `0`, `9223372036854775808`, `true`, `null`, `[1]`, `{}`,
	} {
		a, err := c.do(w.Context(), http.MethodPost, "/v1/like", `{"item_id":`+id+`,"item_type":"post"}`)
		require.NoError(w, err)
		require.Equal(w, http.StatusBadRequest, a.status, "item_id %s", id)
		require.Contains(w, string(a.body), "item_id", "the answer to item_id %s names the field", id)
	}
	for _, item := range liked {
		w.mutate(c, http.MethodDelete, item)
	}
}

// web98 shows on the wire what the numbers below show in full.
func web98(w *webCase) {
	const n = 1049
	item := w.newItem()
	var ops []string
	for range n - 1 {
		ops = append(ops, fmt.Sprintf(`{"user_id":"%d","item_id":"%d","item_type":"post","action":"like"}`, w.newUser(), item))
	}
	for from := 0; from < len(ops); from += likes.MaxApply {
		a, err := w.service().do(w.Context(), http.MethodPost, "/v1/likes:batch", `{"ops":[`+strings.Join(ops[from:min(from+likes.MaxApply, len(ops))], ",")+`]}`)
		require.NoError(w, err)
		_, err = a.ok()
		require.NoError(w, err)
	}
	r := w.mutate(w.as(w.newUser(), 0), http.MethodPost, item)
	require.Equal(w, int64(n), r.Count)
	require.Equal(w, "1K", r.Formatted)
	checkShort(w)
}

// checkShort is one rule for all numbers: truncated and monotone.
func checkShort(t T) {
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1K", 1049: "1K", 1050: "1K", 1524: "1.5K", 10_000: "10K", 999_499: "999.4K",
		999_949: "999.9K", 999_950: "999.9K", 999_999: "999.9K", 1_000_000: "1M", 999_999_999: "999.9M",
		1_000_000_000: "1B", 1_000_000_000_000: "1T", -1: "-1",
	} {
		require.Equal(t, want, likes.Short(n), "%d", n)
	}
}

// web102 is about sizes: the maximum works, one more is the client's mistake.
func web102(w *webCase) {
	c := w.as(w.newUser(), 0)
	first := w.newItem()
	w.item.Add(100_000)
	const beyond = 70_000
	for _, n := range []int{0, 1, likes.MaxRead, likes.MaxRead + 1, beyond} {
		pairs, ids, ops := make([]string, n), make([]string, n), make([]string, n)
		for i := range n {
			id := strconv.FormatInt(int64(first)+int64(i), 10)
			pairs[i] = `{"item_id":"` + id + `","item_type":"post"}`
			ids[i] = `"` + id + `"`
			ops[i] = `{"user_id":"1","item_id":"` + id + `","item_type":"post","action":"unlike"}`
		}
		fits := n > 0 && n <= likes.MaxRead
		w.sized(c, "/v1/counts", `{"items":[`+strings.Join(pairs, ",")+`]}`, fits)
		w.sized(c, "/v1/has_liked", `{"item_type":"post","item_ids":[`+strings.Join(ids, ",")+`]}`, fits)
		w.sized(w.service(), "/v1/likes:batch", `{"ops":[`+strings.Join(ops, ",")+`]}`, n > 0 && n <= likes.MaxApply)
	}
	huge := `{"items":[` + strings.Repeat(" ", 50<<20) + `]}`
	for _, path := range []string{"/v1/counts", "/v1/has_liked", "/v1/like"} {
		w.sized(c, path, "{}", false)
		w.sized(c, path, "", false)
		w.sized(c, path, huge, false)
	}
}

// sized posts a body and requires a 200 or one clear 4xx. A server may also
// close the connection on a body that it will not read.
func (w *webCase) sized(c client, path, body string, fits bool) {
	w.Helper()
	a, err := c.do(w.Context(), http.MethodPost, path, body)
	if err != nil && len(body) > 1<<20 {
		return
	}
	require.NoError(w, err, "%s with %d bytes", path, len(body))
	if fits {
		require.Equal(w, http.StatusOK, a.status, "%s with %d bytes: %.200s", path, len(body), a.body)
		return
	}
	require.GreaterOrEqual(w, a.status, 400, "%s with %d bytes: %.200s", path, len(body), a.body)
	require.Less(w, a.status, 500, "%s with %d bytes: %.200s", path, len(body), a.body)
	require.Contains(w, a.header.Get("Content-Type"), "application/problem+json")
	r, err := a.reply()
	require.NoError(w, err)
	require.NotEmpty(w, r.Error)
}

// web106 refuses a batch with one malformed entry and names the entry.
func web106(w *webCase) {
	u, item := w.newUser(), w.newItem()
	c := w.as(u, 0)
	bodies := map[string]string{
		"/v1/counts":      `{"items":[{"item_id":"1","item_type":"post"},{"item_id":"x7","item_type":"post"}]}`,
		"/v1/has_liked":   `{"item_type":"post","item_ids":["1","x7"]}`,
		"/v1/likes:batch": fmt.Sprintf(`{"ops":[{"user_id":"1","item_id":"%d","item_type":"post","action":"like"},{"user_id":"1","item_id":"x7","item_type":"post","action":"like"}]}`, item),
	}
	for path, body := range bodies {
		caller := c
		if path == "/v1/likes:batch" {
			caller = w.service()
		}
		a, err := caller.do(w.Context(), http.MethodPost, path, body)
		require.NoError(w, err)
		require.Equal(w, http.StatusBadRequest, a.status, "%s: %.200s", path, a.body)
		require.Contains(w, string(a.body), "x7", path)
		require.Contains(w, string(a.body), "[1]", "%s names the entry", path)
	}
	require.Zero(w, w.count(item), "an entry of a refused batch was applied")
}
