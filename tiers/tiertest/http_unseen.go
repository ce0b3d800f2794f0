package tiertest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

// Unseen holds a running API on which items are registered (items.registered) to
// what is not to be seen being not there: the same bytes, in the same time.
func Unseen(t *testing.T, target HTTPTarget) {
	w := newWeb(t, target)
	t.Run("case 91 over HTTP, where items are registered", func(t *testing.T) {
		Case(t, 91)
		unseenBytes(&webCase{T: t, web: w})
	})
	t.Run("case 91 over HTTP, by the clock", func(t *testing.T) {
		Case(t, 91)
		c := &webCase{T: t, web: w}
		for _, call := range []string{"count", "like"} {
			for _, pair := range [][2]string{{"private", "unknown"}, {"private", "hidden"}} {
				accuracy := c.tellApart(call, pair[0], pair[1], timedPairs)
				t.Logf("%s of %s and %s items: told apart by the clock with an accuracy of %.3f over %d pairs", call, pair[0], pair[1], accuracy, timedPairs)
				require.LessOrEqual(t, accuracy, maxAccuracy)
			}
		}
	})
}

// Half of the pairs train the classifier, the other half of 10,000 answers tests it:
// by chance alone it is right in 50 % of them, give or take 0.5 %.
const (
	timedPairs  = 10_000
	maxAccuracy = 0.55
)

// unseenBytes compares items that there are with one that there never was.
func unseenBytes(w *webCase) {
	owner, outsider := w.newUser(), w.newUser()
	unknown, private, deleted, blocked := w.newItem(), w.newItem(), w.newItem(), w.newItem()
	for item, more := range map[likes.ItemID]string{private: `,"visibility":"private"`, deleted: "", blocked: ""} {
		w.owned(item, owner, more)
		w.mutate(w.as(owner, 0), http.MethodPost, item)
	}
	w.now(deleted, `"state":"deleted"`)
	w.tell(http.MethodPut, "/v1/blocks", fmt.Sprintf(`{"blocker_id":"%d","blocked_id":"%d"}`, outsider, owner))
	w.alike(w.as(outsider, 0), unknown, private, deleted, blocked)
	w.alike(w.anybody(0), unknown, private, deleted)
	w.shows(w.as(owner, 0), private, 1)
}

// tellApart times calls on two kinds of items, one of each after the other, and
// returns how often the better threshold tells which was which.
//
// Every call is of another viewer and item, so that none is answered from memory:
// the time is that of the whole way through the store.
func (w *webCase) tellApart(call, one, other string, pairs int) float64 {
	w.Helper()
	const kindItems = 100
	viewers := make([]client, (pairs+kindItems-1)/kindItems)
	for i := range viewers {
		viewers[i] = w.as(w.newUser(), 0)
	}
	var items [2][]likes.ItemID
	for kind, name := range []string{one, other} {
		for range kindItems {
			items[kind] = append(items[kind], w.newKind(name))
		}
	}
	w.timed(viewers[0], call, items[0][0]) // the connection
	var samples [2][]time.Duration
	for n := range pairs {
		c := viewers[n/kindItems]
		first := rand.IntN(2) // neither kind is always the first
		for _, kind := range []int{first, 1 - first} {
			samples[kind] = append(samples[kind], w.timed(c, call, items[kind][n%kindItems]))
		}
	}
	return accuracy(samples[0], samples[1])
}

// newKind returns a new item that nobody but its owner sees, or nobody at all.
func (w *webCase) newKind(name string) likes.ItemID {
	w.Helper()
	item := w.newItem()
	switch name {
	case "private":
		w.owned(item, w.newUser(), `,"visibility":"private"`)
	case "hidden":
		w.owned(item, w.newUser(), `,"state":"hidden"`)
	default: // unknown
	}
	return item
}

// timed sends one call that must be refused.
func (w *webCase) timed(c client, name string, item likes.ItemID) time.Duration {
	call := itemCalls(item)[name]
	start := time.Now()
	a, err := c.do(context.WithoutCancel(w.Context()), call.method, call.path, call.body)
	took := time.Since(start)
	require.NoError(w, err)
	require.Equal(w, http.StatusNotFound, a.status, "%s", a.body)
	return took
}

// sample is one call: how long it took, and of which kind it was.
type sample struct {
	took time.Duration
	kind int
}

// accuracy trains a threshold on the first half of two equally long series and
// returns the part of the second half that it tells right. 0.5 is chance.
func accuracy(a, b []time.Duration) float64 {
	half := len(a) / 2
	label := func(from, to int) []sample {
		var all []sample
		for i := from; i < to; i++ {
			all = append(all, sample{a[i], 0}, sample{b[i], 1})
		}
		slices.SortFunc(all, func(x, y sample) int { return cmp.Compare(x.took, y.took) })
		return all
	}
	// Slower than at is of the kind slow. right counts those of kind 1 above the
	// threshold and of kind 0 at or below it, as the threshold moves up.
	train := label(0, half)
	right := half
	best, at, slow := right, time.Duration(0), 1
	for i, s := range train {
		right += 1 - 2*s.kind
		if i+1 < len(train) && train[i+1].took == s.took {
			continue // a threshold does not split equal times
		}
		for kind, n := range []int{len(train) - right, right} {
			if n > best {
				best, at, slow = n, s.took, kind
			}
		}
	}
	test := label(half, len(a))
	told := 0
	for _, s := range test {
		if (s.took > at) == (s.kind == slow) {
			told++
		}
	}
	return float64(told) / float64(len(test))
}
