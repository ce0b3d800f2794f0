package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/visibility"
)

type sums = map[likes.Counter]int64

func requireTotals(t testing.TB, c store.Catalog, user likes.UserID, want store.Totals) {
	t.Helper()
	got, err := c.Totals(t.Context(), user)
	require.NoError(t, err)
	if want.Given == nil {
		want.Given = sums{}
	}
	if want.Received == nil {
		want.Received = sums{}
	}
	if want.ReceivedHidden == nil {
		want.ReceivedHidden = sums{}
	}
	require.Equal(t, want, got)
}

func (c Catalog) mutate(t testing.TB, op likes.Op, counter likes.Counter, i likes.Item, user likes.UserID) {
	t.Helper()
	m := likes.Mutation{Op: op, Edge: likes.Edge{Counter: counter, Item: i, User: user}}
	if op == likes.Add {
		m.Event = likes.EventID{byte(user), 1}
	}
	require.NoError(t, c.Apply(t.Context(), m))
}

// testTotals is the history of three items with 5, 7 and 9 likes under one owner:
// the totals of the owner and of a liker move when an item does, once, and back.
func testTotals(t *testing.T, c Catalog) {
	const owner, liker, other = 100, 1, 200
	n := map[int64]int{1: 5, 2: 7, 3: 9}
	for id, count := range n {
		put(t, c, store.ItemChange{Item: item(id), Owner: of(owner)})
		for user := 1; user <= count; user++ {
			c.mutate(t, likes.Set, likes.Likes, item(id), likes.UserID(user))
		}
	}
	c.mutate(t, likes.Set, likes.Likes, item(50), liker) // without a row
	put(t, c, store.ItemChange{Item: item(51), Owner: of(other)})
	c.mutate(t, likes.Set, likes.Likes, item(51), owner)
	require51 := func() { requireTotals(t, c, other, store.Totals{Received: sums{likes.Likes: 1}}) }
	state := func(id int64, s visibility.State, received, given int64) {
		t.Helper()
		put(t, c, store.ItemChange{Item: item(id), State: s})
		requireTotals(t, c, owner, store.Totals{Given: sums{likes.Likes: 1}, Received: sums{likes.Likes: received}})
		requireTotals(t, c, liker, store.Totals{Given: sums{likes.Likes: given}})
		require51()
	}
	for id, left := range map[int64]int64{1: 16, 2: 14, 3: 12} { // 16 of 21 are those of the items with 7 and 9
		state(id, visibility.Live, 21, 4)
		state(id, visibility.Hidden, left, 3)
		state(id, visibility.Deleted, left, 3)
		state(id, visibility.Deleted, left, 3)
		state(id, visibility.Live, 21, 4)
		state(id, visibility.Deleted, left, 3)
		state(id, visibility.Live, 21, 4)
	}

	// What is liked meanwhile counts from when the item is back.
	state(1, visibility.Deleted, 16, 3)
	c.mutate(t, likes.Set, likes.Likes, item(1), 6)
	c.mutate(t, likes.Clear, likes.Likes, item(1), liker)
	requireTotals(t, c, owner, store.Totals{Given: sums{likes.Likes: 1}, Received: sums{likes.Likes: 16}})
	state(1, visibility.Live, 21, 3)
	put(t, c, store.ItemChange{Item: item(3), HideCounts: yes()})
	requireTotals(t, c, owner, store.Totals{Given: sums{likes.Likes: 1}, Received: sums{likes.Likes: 12}, ReceivedHidden: sums{likes.Likes: 9}})
	put(t, c, store.ItemChange{Item: item(3), State: visibility.Hidden})
	requireTotals(t, c, owner, store.Totals{Given: sums{likes.Likes: 1}, Received: sums{likes.Likes: 12}})
	put(t, c, store.ItemChange{Item: item(3), State: visibility.Live, HideCounts: no(), Owner: of(other)})
	requireTotals(t, c, owner, store.Totals{Given: sums{likes.Likes: 1}, Received: sums{likes.Likes: 12}})
	requireTotals(t, c, other, store.Totals{Received: sums{likes.Likes: 10}})
	requireTotals(t, c, 999, store.Totals{})
}

// testTotalsCounters has something of each counter, on items of two types that
// share their ids, and levels that do not matter.
func testTotalsCounters(t *testing.T, c Catalog) {
	const owner = 100
	reel := likes.Item{Type: post + 1, ID: 1}
	put(t, c, store.ItemChange{Item: item(1), Owner: of(owner), Level: visibility.Private})
	put(t, c, store.ItemChange{Item: reel, Owner: of(owner), Level: visibility.Followers, HideCounts: yes()})
	var users likes.UserID
	given, received, hidden := sums{}, sums{}, sums{}
	for _, counter := range likes.Counters() {
		users++
		op := likes.Set
		if counter.IsTally() {
			op = likes.Add
		} else {
			given[counter] = 2
		}
		for user := likes.UserID(1); user <= users; user++ {
			c.mutate(t, op, counter, item(1), user)
			c.mutate(t, op, counter, reel, user)
			c.mutate(t, op, counter, reel, user+users)
			received[counter]++
			hidden[counter] += 2
		}
		if op == likes.Set { // a tombstone
			c.mutate(t, op, counter, item(1), 50)
			c.mutate(t, likes.Clear, counter, item(1), 50)
		}
	}
	requireTotals(t, c, owner, store.Totals{Received: received, ReceivedHidden: hidden})
	requireTotals(t, c, 1, store.Totals{Given: given})
	requireTotals(t, c, 50, store.Totals{})
}
