package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

// testReads asks for present, absent and repeated items in no order.
func testReads(t *testing.T, s Store) {
	const items = 60
	var ws []store.Write
	for id := int64(1); id <= items; id += 2 {
		for user := int64(1); user <= id%5+1; user++ {
			ws = append(ws, set(user, id, id))
		}
	}
	issue(t, s, ws...)
	issue(t, s, clear(1, 3, 100))

	asked := make([]likes.Item, 0, likes.MaxRead)
	for n := int64(0); n < likes.MaxRead; n++ {
		asked = append(asked, likes.Item{Type: post + likes.ItemType(n%7/6), ID: likes.ItemID(n*37%items + 1)})
	}
	counts := make([]store.CountRow, len(asked))
	registers := make([]likes.Register, len(asked))
	for i := range asked { // a store overwrites whatever a reused slice held
		counts[i].N, registers[i].Liked = -1, true
	}
	require.NoError(t, s.Counts(t.Context(), likes.Likes, asked, counts))
	require.NoError(t, s.Registers(t.Context(), likes.Likes, 1, asked, registers))
	for i, it := range asked {
		id := int64(it.ID)
		switch {
		case it.Type != post || id%2 == 0:
			require.Equal(t, store.CountRow{}, counts[i])
			require.Equal(t, likes.Register{}, registers[i])
		case id == 3:
			require.Equal(t, int64(3), counts[i].N)
			require.False(t, registers[i].Liked)
			require.Equal(t, clockAt(100), registers[i].Clock)
		default:
			require.Equal(t, id%5+1, counts[i].N)
			require.Equal(t, likes.Register{Liked: true, Clock: clockAt(id), LikedAt: at(id)}, registers[i])
		}
	}
	other := make([]store.CountRow, 1)
	require.NoError(t, s.Counts(t.Context(), likes.Saves, []likes.Item{item(1)}, other))
	require.Equal(t, store.CountRow{}, other[0], "counters do not mix")
}

func testLikers(t *testing.T, s Store) {
	var ws []store.Write
	for user := int64(1); user <= 50; user++ {
		ws = append(ws, set(user, 10, user), set(user, 11, user))
	}
	issue(t, s, ws...)
	for user := int64(3); user <= 50; user += 3 {
		issue(t, s, clear(user, 10, 100))
	}
	var got []int64
	var after likes.UserID
	for {
		page, err := s.Likers(t.Context(), likes.Likes, item(10), after, 7)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page), 7)
		for _, m := range page {
			require.Equal(t, likes.Member{Edge: edge(int64(m.Edge.User), 10), LikedAt: at(int64(m.Edge.User))}, m)
			got = append(got, int64(m.Edge.User))
			after = m.Edge.User
		}
		if len(page) < 7 {
			break
		}
	}
	var want []int64
	for user := int64(1); user <= 50; user++ {
		if user%3 != 0 {
			want = append(want, user)
		}
	}
	require.Equal(t, want, got)
}

func testLikedBy(t *testing.T, s Store) {
	var ws []store.Write
	var want []likes.Item
	for typ := likes.ItemType(1); typ <= 3; typ++ {
		for id := int64(20); id >= 1; id-- {
			w := set(1, id, id)
			w.Edge.Item.Type = typ
			ws = append(ws, w)
			other := w
			other.Edge.User = 2
			ws = append(ws, other)
			if id%4 != 0 {
				want = append(want, w.Edge.Item)
			}
		}
	}
	issue(t, s, ws...)
	for _, w := range ws {
		if w.Edge.User == 1 && w.Edge.Item.ID%4 == 0 {
			w.Liked, w.Clock = false, clockAt(100)
			issue(t, s, w)
		}
	}
	for _, limit := range []int{1, 7, 15, 1000} {
		var got []likes.Item
		var after likes.Item
		for {
			page, err := s.LikedBy(t.Context(), likes.Likes, 1, after, limit)
			require.NoError(t, err)
			for _, m := range page {
				require.Equal(t, likes.UserID(1), m.Edge.User)
				require.Equal(t, likes.Likes, m.Edge.Counter)
				require.Equal(t, at(int64(m.Edge.Item.ID)), m.LikedAt)
				got = append(got, m.Edge.Item)
				after = m.Edge.Item
			}
			if len(page) < limit {
				break
			}
		}
		require.Equal(t, want, got, "limit %d", limit)
	}
}

func testNow(t *testing.T, s Store) {
	before := time.Now()
	first, err := s.Now(t.Context())
	require.NoError(t, err)
	second, err := s.Now(t.Context())
	require.NoError(t, err)
	require.False(t, second.Before(first))
	require.WithinDuration(t, before, first, 10*time.Second)
}
