package storetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/visibility"
)

// testConcurrentPuts changes different parts of one item at once. No change loses
// another's, each answer shows the part that was put, and the changes that were
// told, one up and one down in turns, end where the item is.
func testConcurrentPuts(t *testing.T, c Catalog) {
	const clients, rounds = 6, 40
	put(t, c, store.ItemChange{Item: item(1)})
	var hides, blocks, follows atomic.Int64
	count := func(n *atomic.Int64, on, changed bool) {
		switch {
		case changed && on:
			n.Add(1)
		case changed:
			n.Add(-1)
		}
	}
	b, f := store.Block{Item: item(1), Blocked: 1}, store.Follow{Follower: 1, Followee: 7}
	parallel(t, clients, func(ctx context.Context, i int) error {
		for n := range rounds {
			on := (n+i)%2 == 0
			now, changed, err := c.PutItem(ctx, store.ItemChange{Item: item(1), HideCounts: &on})
			if err != nil {
				return err
			}
			if now.HideCounts != on {
				return fmt.Errorf("put %t, answered %+v", on, now)
			}
			count(&hides, on, changed)
			change := store.ItemChange{Item: item(1), Owner: of(7)}
			if i%2 == 0 {
				change = store.ItemChange{Item: item(1), Level: visibility.Followers, State: visibility.Hidden}
			}
			if _, _, err := c.PutItem(ctx, change); err != nil {
				return err
			}
			if changed, err = c.PutBlock(ctx, b, on); err != nil {
				return err
			}
			count(&blocks, on, changed)
			if changed, err = c.PutFollow(ctx, f, on); err != nil {
				return err
			}
			count(&follows, on, changed)
		}
		return nil
	})
	got := facts(t, c, 1, item(1))[0]
	require.Equal(t, visibility.Facts{
		Known: true, Owner: 7, Level: visibility.Followers, State: visibility.Hidden,
		HideCounts: hides.Load() == 1, Blocked: blocks.Load() == 1, Follows: follows.Load() == 1,
	}, got)
	for _, n := range []*atomic.Int64{&hides, &blocks, &follows} {
		require.Contains(t, []int64{0, 1}, n.Load())
	}
}

// testEqualPuts makes the same new row many times at once: one call finds it new,
// and all are answered with it.
func testEqualPuts(t *testing.T, c Catalog) {
	const rounds, clients = 40, 8
	for round := int64(1); round <= rounds; round++ {
		var items, blocks, itemBlocks, follows atomic.Int64
		want := visibility.Item{Item: item(round), Owner: 7, Level: visibility.Private, State: visibility.Live}
		parallel(t, clients, func(ctx context.Context, _ int) error {
			now, changed, err := c.PutItem(ctx, store.ItemChange{Item: want.Item, Owner: of(7), Level: visibility.Private})
			if err == nil && now != want {
				err = fmt.Errorf("answered %+v", now)
			}
			if err != nil {
				return err
			}
			countIf(&items, changed)
			if changed, err = c.PutBlock(ctx, store.Block{Blocker: likes.UserID(round), Blocked: 1000}, true); err != nil {
				return err
			}
			countIf(&blocks, changed)
			if changed, err = c.PutBlock(ctx, store.Block{Item: item(round), Blocked: 1000}, true); err != nil {
				return err
			}
			countIf(&itemBlocks, changed)
			changed, err = c.PutFollow(ctx, store.Follow{Follower: likes.UserID(round), Followee: 1000}, true)
			countIf(&follows, changed)
			return err
		})
		require.Equal(t, [4]int64{1, 1, 1, 1}, [4]int64{items.Load(), blocks.Load(), itemBlocks.Load(), follows.Load()})
	}
}

func countIf(n *atomic.Int64, yes bool) {
	if yes {
		n.Add(1)
	}
}

// whileWriting runs check again and again while write runs, and at least 20 times.
func whileWriting(t *testing.T, write func(ctx context.Context, n int) error, check func()) {
	t.Helper()
	const writes, checks = 150, 20
	var done sync.WaitGroup
	var left atomic.Int64
	left.Store(writes)
	failed := make(chan error, 1)
	done.Go(func() {
		defer left.Store(0)
		for n := 1; n <= writes; n++ {
			if err := write(t.Context(), n); err != nil {
				failed <- err
				return
			}
			left.Add(-1)
		}
	})
	for n := 0; n < checks || left.Load() > 0; n++ {
		check()
	}
	done.Wait()
	close(failed)
	require.NoError(t, <-failed)
}

// testFactsSnapshot gives two items to one owner after the other: the second is
// never seen with a later owner than the first, in whichever order they are asked.
func testFactsSnapshot(t *testing.T, c Catalog) {
	first, second := item(2), item(1)
	put(t, c, store.ItemChange{Item: first})
	put(t, c, store.ItemChange{Item: second})
	whileWriting(t, func(ctx context.Context, n int) error {
		for _, i := range []likes.Item{first, second} {
			if _, _, err := c.PutItem(ctx, store.ItemChange{Item: i, Owner: of(likes.UserID(n))}); err != nil {
				return err
			}
		}
		return nil
	}, func() {
		f := facts(t, c, 9, first, second, first)
		ahead := f[0].Owner - f[1].Owner
		require.Contains(t, []likes.UserID{0, 1}, ahead)
		require.Equal(t, f[0], f[2])
	})
}

// testTotalsSnapshot lets an owner like an own item and take it back: what is given
// is what is received.
func testTotalsSnapshot(t *testing.T, c Catalog) {
	const owner = 7
	put(t, c, store.ItemChange{Item: item(1), Owner: of(owner)})
	whileWriting(t, func(ctx context.Context, n int) error {
		m := likes.Mutation{Op: likes.Set, Edge: edge(owner, 1)}
		if n%2 == 0 {
			m.Op = likes.Clear
		}
		return c.Apply(ctx, m)
	}, func() {
		totals, err := c.Totals(t.Context(), owner)
		require.NoError(t, err)
		require.Equal(t, totals.Given[likes.Likes], totals.Received[likes.Likes])
	})
}
