package tiertest

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

// What of an answer has digits of its own, and is none of the number that is hidden.
var (
	tookPattern    = regexp.MustCompile(`"took_ms":\d+`)
	instantPattern = regexp.MustCompile(`"(as_of|liked_at)":"[^"]+"`)
)

// many is a number that nothing else in an answer has, in full and in short.
const (
	many      = 1847
	manyShort = "1.8K"
)

// web94 hides the counts of an item: no answer to anybody but the owner has the
// number in any byte, and all of them say that it is hidden.
func web94(w *webCase) {
	owner, stranger := w.newUser(), w.newUser()
	loud, quiet := w.newItem(), w.newItem()
	w.owned(loud, owner, `,"counts":"hidden"`)
	w.owned(quiet, owner, `,"counts":"hidden"`)
	w.liked(loud, many)
	w.liked(quiet, 2)
	viewers := []viewer{
		{"anonymous", w.anybody(0), 0, false},
		{"stranger", w.as(stranger, 0), stranger, false},
		{"service", w.service(), 0, false},
		{"service as stranger", w.service(), stranger, true},
	}
	edges := map[string]bool{"like": true, "unlike": true, "save": true, "unsave": true, "has": true, "has by body": true}
	for _, v := range viewers {
		for _, name := range inOrder {
			call := itemCalls(loud)[name]
			if call.needsToken && v.token == "" || v.user == 0 && edges[name] {
				continue
			}
			texts := map[likes.ItemID]string{}
			for _, item := range []likes.ItemID{loud, quiet} {
				call := itemCalls(item)[name]
				if v.named {
					call = call.asUser(v.user)
				}
				a, err := v.do(w.Context(), call.method, call.path, call.body, "X-Request-Id", "same")
				require.NoError(w, err)
				require.Equal(w, http.StatusOK, a.status, "%s to %s: %s", name, v.name, a.body)
				a.header.Del("Like-Version") // it names the edge and its clock, and is opaque
				texts[item] = instantPattern.ReplaceAllString(transcript(a, item), "")
				if !strings.HasPrefix(name, "has") {
					require.Contains(w, texts[item], `"hidden":true`, "%s to %s", name, v.name)
				}
				require.Empty(w, a.header.Get("Etag"))
				require.Equal(w, "private, no-store", a.header.Get("Cache-Control"))
			}
			require.NotRegexp(w, `184[5-9]|`+regexp.QuoteMeta(manyShort), texts[loud], "%s to %s", name, v.name)
			require.Equal(w, texts[quiet], texts[loud], "%s to %s tells a loved item from one that is not", name, v.name)
		}
	}
	w.inLists(stranger, loud, quiet)
	c := w.as(owner, 0)
	w.shows(c, loud, many)
	a, err := c.do(w.Context(), http.MethodGet, itemCalls(loud)["count"].path, "")
	require.NoError(w, err)
	require.Equal(w, "private, no-store", a.header.Get("Cache-Control"), "what the owner is told is not for others")
	likers, err := c.likers(w.Context(), loud, likes.MaxPage)
	require.NoError(w, err)
	require.Len(w, likers, many)
	require.Equal(w, int64(many+1), w.mutate(c, http.MethodPost, loud).Count)
}

// inOrder are the calls about an item, likes before what reads them, and in the end
// as in the beginning.
var inOrder = []string{
	"like", "save", "view", "share", "count", "all counts", "counts", "counts by body", "has", "has by body", "likers", "savers", "unlike", "unsave",
}

// inLists looks at answers about both items at once: neither their order nor a
// neighbour's number tells anything.
func (w *webCase) inLists(u likes.UserID, loud, quiet likes.ItemID) {
	w.Helper()
	c := w.as(u, 0)
	shown := w.newItem()
	w.liked(shown, 3)
	body := `{"items":[` + likeBody(quiet) + "," + likeBody(shown) + "," + likeBody(loud) + `]}`
	a, err := c.do(w.Context(), http.MethodPost, "/v1/counts", body)
	require.NoError(w, err)
	require.Contains(w, string(a.body), fmt.Sprintf(
		`{"counts":{"post:%d":{"hidden":true},"post:%d":{"likes":3},"post:%d":{"hidden":true}},`, quiet, shown, loud))
	for _, item := range []likes.ItemID{quiet, shown, loud} {
		w.mutate(c, http.MethodPost, item)
	}
	a, err = c.do(w.Context(), http.MethodGet, "/v1/me/likes", "")
	require.NoError(w, err)
	var at []int
	for _, item := range []likes.ItemID{shown, quiet, loud} { // newest ids first
		at = append(at, strings.Index(string(a.body), `"`+strconv.FormatInt(int64(item), 10)+`"`))
	}
	require.IsIncreasing(w, at, "%s", a.body)
	for _, item := range []likes.ItemID{quiet, shown, loud} {
		w.mutate(c, http.MethodDelete, item)
	}
}
