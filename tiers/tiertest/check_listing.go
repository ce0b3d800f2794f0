package tiertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

func listingChecks() []check {
	return []check{
		{name: "Likers pages through the users who like the item, by ascending user id", run: checkLikers},
		{name: "LikedBy pages by ascending item type, then descending item id", run: checkLikedBy},
		{name: "under concurrent writes every stable member appears exactly once and nobody twice", run: func(e *env) { checkWalk(e, 700, 50) }},
		{name: "under concurrent writes LikedBy keeps the same rules", run: checkLikedByWalk},
		{name: "a cursor of another listing is ErrInvalid", run: checkForeignCursor},
	}
}

func checkLikers(e *env) {
	item := e.item()
	users := e.users(23)
	shuffled := slices.Clone(users)
	rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	e.bulk(mutations(set, edges(item, shuffled...)...))
	e.bulk(mutations(set, edges(e.item(), users...)...)) // neighbours that must not show
	e.unlike(edges(item, users[4])[0])
	want := slices.Delete(slices.Clone(users), 4, 5)
	e.settle()
	for _, limit := range []int{1, 2, 7, 21, 22, 23, likes.MaxPage} {
		require.Equal(e, want, e.likers(item, limit), "limit %d", limit)
	}
	none, next, err := e.any().Likers(e.Context(), likes.Likes, e.item(), "", 10)
	require.NoError(e, err)
	require.Empty(e, none)
	require.Empty(e, next)
}

func (e *env) likedBy(user likes.UserID, limit int) ([]likes.Item, error) {
	var all []likes.Item
	var cur likes.Cursor
	for range maxPages {
		page, next, err := e.any().LikedBy(e.Context(), likes.Likes, user, cur, limit)
		if err != nil {
			return all, err
		}
		for _, m := range page {
			if m.Edge.User != user || m.Edge.Counter != likes.Likes {
				return all, fmt.Errorf("%v among what user %d likes", m.Edge, user)
			}
			all = append(all, m.Edge.Item)
		}
		if next == "" {
			return all, nil
		}
		cur = next
	}
	return all, fmt.Errorf("no end after %d pages", maxPages)
}

func checkLikedBy(e *env) {
	user := e.user()
	var want []likes.Item
	for _, t := range []likes.ItemType{1, 2, 3} {
		ids := []likes.ItemID{e.item().ID, e.item().ID, e.item().ID, e.item().ID}
		slices.Reverse(ids)
		for _, id := range ids {
			want = append(want, likes.Item{Type: t, ID: id})
		}
	}
	order := rand.Perm(len(want))
	for _, i := range order {
		e.like(likes.Edge{Counter: likes.Likes, Item: want[i], User: user})
	}
	e.unlike(likes.Edge{Counter: likes.Likes, Item: want[5], User: user})
	want = slices.Delete(want, 5, 6)
	e.settle()
	for _, limit := range []int{1, 3, 4, 11, 12, likes.MaxPage} {
		got, err := e.likedBy(user, limit)
		require.NoError(e, err)
		require.Equal(e, want, got, "limit %d", limit)
	}
}

// checkWalk pages through stable likers while others, between them, come and go.
func checkWalk(e *env, stable, limit int) {
	item := e.item()
	users := e.users(2 * stable)
	var stay, toggle []likes.UserID
	for i, u := range users {
		if i%2 == 0 {
			stay = append(stay, u)
		} else {
			toggle = append(toggle, u)
		}
	}
	e.bulk(mutations(set, edges(item, stay...)...))
	e.settle()
	e.whileToggling(edges(item, toggle...), func() {
		for range 3 {
			got := e.likers(item, limit)
			require.True(e, slices.IsSorted(got), "ascending")
			require.Len(e, slices.Compact(slices.Clone(got)), len(got), "somebody appears twice")
			got = slices.DeleteFunc(got, func(u likes.UserID) bool {
				_, stays := slices.BinarySearch(stay, u)
				return !stays
			})
			require.Equal(e, stay, got)
		}
	})
	e.bulk(mutations(clr, edges(item, toggle...)...))
	e.exact(item, stay, toggle[0])
}

// whileToggling runs the body while random edges are liked and unliked.
func (e *env) whileToggling(gs []likes.Edge, body func()) {
	e.Helper()
	const writers = 4
	ctx, cancel := context.WithCancel(e.Context())
	errs := make(chan error, writers)
	for range writers {
		go func() {
			for ctx.Err() == nil {
				m := set(gs[rand.IntN(len(gs))])
				if rand.IntN(2) == 0 {
					m.Op = likes.Clear
				}
				if r := apply1(e.Context(), e.any(), m); r.Err != nil {
					errs <- r.Err
					return
				}
			}
			errs <- nil
		}()
	}
	var failed []error
	defer func() { require.NoError(e, errors.Join(failed...)) }()
	defer func() { // also when the body gives up
		cancel()
		for range writers {
			failed = append(failed, <-errs)
		}
	}()
	body()
}

func checkLikedByWalk(e *env) {
	const stable = 100
	user := e.user()
	var stay, toggle []likes.Edge
	for range stable {
		stay = append(stay, likes.Edge{Counter: likes.Likes, Item: e.item(), User: user})
		toggle = append(toggle, likes.Edge{Counter: likes.Likes, Item: e.item(), User: user})
	}
	e.bulk(mutations(set, stay...))
	e.settle()
	e.whileToggling(toggle, func() {
		for range 3 {
			got, err := e.likedBy(user, 7)
			require.NoError(e, err)
			seen := map[likes.Item]int{}
			for _, item := range got {
				seen[item]++
				require.Equal(e, 1, seen[item], "%v appears twice", item)
			}
			for _, g := range stay {
				require.Equal(e, 1, seen[g.Item], "%v is missing", g.Item)
			}
		}
	})
}

func checkForeignCursor(e *env) {
	item, user := e.item(), e.user()
	for _, g := range edges(item, e.users(3)...) {
		e.like(g)
		e.like(likes.Edge{Counter: likes.Likes, Item: e.item(), User: user})
	}
	e.settle()
	s, ctx := e.any(), e.Context()
	_, ofItem, err := s.Likers(ctx, likes.Likes, item, "", 1)
	require.NoError(e, err)
	_, ofUser, err := s.LikedBy(ctx, likes.Likes, user, "", 1)
	require.NoError(e, err)
	require.NotEmpty(e, ofItem)
	require.NotEmpty(e, ofUser)
	bad := func(_ []likes.Member, _ likes.Cursor, err error) {
		e.Helper()
		require.ErrorIs(e, err, likes.ErrInvalid)
	}
	bad(s.Likers(ctx, likes.Likes, e.item(), ofItem, 1))
	bad(s.Likers(ctx, likes.Saves, item, ofItem, 1))
	bad(s.Likers(ctx, likes.Likes, item, ofUser, 1))
	bad(s.Likers(ctx, likes.Likes, item, "nonsense", 1))
	bad(s.LikedBy(ctx, likes.Likes, e.user(), ofUser, 1))
	bad(s.LikedBy(ctx, likes.Saves, user, ofUser, 1))
	bad(s.LikedBy(ctx, likes.Likes, user, ofItem, 1))
	bad(s.LikedBy(ctx, likes.Likes, user, ofUser+"A", 1))
}
