package storetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"likectl/pkg/likes"
	"likectl/pkg/memory"
	"likectl/pkg/store"
	"likectl/pkg/visibility"
)

// CatalogOfMemory returns the oracle's catalog.
func CatalogOfMemory(s *memory.Service) Catalog {
	return Catalog{Catalog: s, Apply: func(ctx context.Context, m likes.Mutation) error {
		return s.Apply(ctx, []likes.Mutation{m})[0].Err
	}}
}

// modelUsers and modelItems are how many each program has.
const modelUsers, modelItems = 4, 4

// testCatalogModel runs random programs over few users and items and compares every
// answer with the oracle's. Each program has users and items of its own.
func testCatalogModel(t *testing.T, c Catalog) {
	ctx := t.Context()
	var programs int64
	rapid.Check(t, func(t *rapid.T) {
		p := program{T: t, ctx: ctx, first: 1000 * programs}
		programs++
		oracle := CatalogOfMemory(memory.New())
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			step := p.step()
			require.Equal(t, step(oracle), step(c))
		}
		require.Equal(t, p.all(oracle), p.all(c))
	})
}

// program draws the steps of one run.
type program struct {
	*rapid.T
	ctx   context.Context //nolint:containedctx // of the test, which rapid's T does not have
	first int64
}

func (p program) user() likes.UserID {
	return likes.UserID(p.first + int64(rapid.IntRange(1, modelUsers).Draw(p.T, "user")))
}

func (p program) item() likes.Item {
	n := rapid.IntRange(1, modelItems).Draw(p.T, "item")
	return likes.Item{Type: post + likes.ItemType(n%2), ID: likes.ItemID(p.first + int64(n+1)/2)}
}

// step draws one call and returns what makes it. Malformed ones are among them.
func (p program) step() func(Catalog) []any {
	on := rapid.Bool().Draw(p.T, "on")
	switch rapid.IntRange(0, 5).Draw(p.T, "call") {
	case 0, 1:
		change := store.ItemChange{
			Item: p.item(), Level: visibility.Level(rapid.IntRange(0, 3).Draw(p.T, "level")),
			State: visibility.State(rapid.IntRange(0, 3).Draw(p.T, "state")),
		}
		if rapid.Bool().Draw(p.T, "owner") {
			change.Owner = of(p.user())
			if rapid.IntRange(0, 4).Draw(p.T, "nobody") == 0 {
				change.Owner = of(0)
			}
		}
		if rapid.Bool().Draw(p.T, "hides") {
			change.HideCounts = &on
		}
		return func(c Catalog) []any {
			now, changed, err := c.PutItem(p.ctx, change)
			return []any{now, changed, err}
		}
	case 2:
		b := store.Block{Blocker: p.user(), Blocked: p.user()}
		if rapid.Bool().Draw(p.T, "of an item") {
			b = store.Block{Item: p.item(), Blocked: b.Blocked}
		}
		return func(c Catalog) []any {
			changed, err := c.PutBlock(p.ctx, b, on)
			return []any{changed, err}
		}
	case 3:
		f := store.Follow{Follower: p.user(), Followee: p.user()}
		return func(c Catalog) []any {
			changed, err := c.PutFollow(p.ctx, f, on)
			return []any{changed, err}
		}
	default:
		m := likes.Mutation{Op: likes.Clear, Edge: likes.Edge{
			Counter: rapid.SampledFrom(likes.Counters()).Draw(p.T, "counter"), Item: p.item(), User: p.user(),
		}}
		switch {
		case m.Edge.Counter.IsTally():
			m.Op, m.Event = likes.Add, likes.EventID{byte(rapid.IntRange(1, 9).Draw(p.T, "event"))}
		case on:
			m.Op = likes.Set
		}
		return func(c Catalog) []any { return []any{c.Apply(p.ctx, m)} }
	}
}

// all reads everything about the program's users and items.
func (p program) all(c Catalog) (all []any) {
	var items []likes.Item
	var users []likes.UserID
	for n := likes.ItemID(p.first); n <= likes.ItemID(p.first+modelItems); n++ {
		if n > 0 {
			items = append(items, likes.Item{Type: post, ID: n}, likes.Item{Type: post + 1, ID: n})
		}
	}
	for n := likes.UserID(p.first + 1); n <= likes.UserID(p.first+modelUsers); n++ {
		users = append(users, n)
	}
	for _, viewer := range append([]likes.UserID{0}, users...) {
		facts, blocked := make([]visibility.Facts, len(items)), make([]bool, len(users))
		require.NoError(p.T, c.Facts(p.ctx, viewer, items, facts))
		require.NoError(p.T, c.Blocked(p.ctx, viewer, users, blocked))
		all = append(all, facts, blocked)
		if viewer > 0 {
			totals, err := c.Totals(p.ctx, viewer)
			all = append(all, totals, err)
		}
	}
	return all
}
