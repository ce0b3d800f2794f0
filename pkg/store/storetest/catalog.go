package storetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/visibility"
)

// Catalog is a catalog under test, and the way in which likes, saves and views come
// to be beside it.
type Catalog struct {
	store.Catalog
	Apply func(context.Context, likes.Mutation) error
}

// CatalogOf returns the catalog of a store.
func CatalogOf(s Store) Catalog {
	return Catalog{Catalog: s, Apply: func(ctx context.Context, m likes.Mutation) error {
		if m.Op == likes.Add {
			a := store.Add{Key: store.Key{Counter: m.Edge.Counter, Item: m.Edge.Item}, Event: m.Event, At: at(0)}
			return s.Add(ctx, []store.Add{a}, make([]store.Added, 1))
		}
		w := store.Write{Edge: m.Edge, Liked: m.Op == likes.Set, Clock: clockAt(0), LikedAt: at(0)}
		return s.Commit(ctx, store.Commit{Writes: []store.Write{w}}, make([]store.Written, 1))
	}}
}

// RunCatalog runs the suite of [store.Catalog]. open returns an empty catalog that
// lives until the end of the test it is given; it is called once per test.
func RunCatalog(t *testing.T, open func(testing.TB) Catalog) {
	tests := []struct {
		name string
		run  func(*testing.T, Catalog)
	}{
		{"PutItemKeepsWhatItDoesNotName", testPutItem},
		{"PutBlockAndPutFollowAreIdempotent", testPutMembers},
		{"FactsAnswerByPosition", testFacts},
		{"BlocksCountEitherWay", testBlocked},
		{"RestrictsSaysWhetherThereIsAnyRow", testRestricts},
		{"MalformedCallsChangeNothing", testCatalogInvalid},
		{"TotalsFollowTheItems", testTotals},
		{"TotalsOfAllCounters", testTotalsCounters},
		{"CatalogModel", testCatalogModel},
		{"ConcurrentPutsOfOneItem", testConcurrentPuts},
		{"ConcurrentEqualPutsChangeOnce", testEqualPuts},
		{"FactsAreOneSnapshot", testFactsSnapshot},
		{"TotalsAreOneSnapshot", testTotalsSnapshot},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

func of(user likes.UserID) *likes.UserID { return &user }
func yes() *bool                         { b := true; return &b }
func no() *bool                          { return new(bool) }

// put, block and follow change one row, which must succeed.
func put(t testing.TB, c store.Catalog, change store.ItemChange) (visibility.Item, bool) {
	t.Helper()
	now, changed, err := c.PutItem(t.Context(), change)
	require.NoError(t, err)
	return now, changed
}

func block(t testing.TB, c store.Catalog, b store.Block, on bool) bool {
	t.Helper()
	changed, err := c.PutBlock(t.Context(), b, on)
	require.NoError(t, err)
	return changed
}

func follow(t testing.TB, c store.Catalog, f store.Follow, on bool) bool {
	t.Helper()
	changed, err := c.PutFollow(t.Context(), f, on)
	require.NoError(t, err)
	return changed
}

func facts(t testing.TB, c store.Catalog, viewer likes.UserID, items ...likes.Item) []visibility.Facts {
	t.Helper()
	out := make([]visibility.Facts, len(items))
	for i := range out { // a store overwrites whatever a reused slice held
		out[i] = visibility.Facts{Known: true, Owner: -1, Follows: true, Blocked: true}
	}
	require.NoError(t, c.Facts(t.Context(), viewer, items, out))
	return out
}

func testPutItem(t *testing.T, c Catalog) {
	step := func(change store.ItemChange, want visibility.Item, wantChanged bool) {
		t.Helper()
		change.Item, want.Item = item(1), item(1)
		now, changed := put(t, c, change)
		require.Equal(t, want, now)
		require.Equal(t, wantChanged, changed)
		require.Equal(t, []visibility.Facts{{
			Known: true, Owner: want.Owner, Level: want.Level, State: want.State, HideCounts: want.HideCounts,
		}}, facts(t, c, 99, item(1)))
	}
	step(store.ItemChange{}, visibility.Item{Level: visibility.Public, State: visibility.Live}, true)
	step(store.ItemChange{}, visibility.Item{Level: visibility.Public, State: visibility.Live}, false)
	full := visibility.Item{Owner: 7, Level: visibility.Private, State: visibility.Hidden, HideCounts: true}
	everything := store.ItemChange{Owner: of(7), Level: full.Level, State: full.State, HideCounts: yes()}
	step(everything, full, true)
	step(everything, full, false)
	step(store.ItemChange{}, full, false)
	full.Level = visibility.Followers
	step(store.ItemChange{Level: visibility.Followers}, full, true)
	full.State = visibility.Deleted
	step(store.ItemChange{State: visibility.Deleted}, full, true)
	full.HideCounts = false
	step(store.ItemChange{HideCounts: no()}, full, true)
	step(store.ItemChange{HideCounts: no()}, full, false)
	full.Owner = 0
	step(store.ItemChange{Owner: of(0)}, full, true)
	step(store.ItemChange{Owner: of(0), State: visibility.Deleted}, full, false)

	other := likes.Item{Type: post + 1, ID: 1}
	require.Equal(t, []visibility.Facts{{}, {}}, facts(t, c, 99, item(2), other), "other items are other rows")
	now, _ := put(t, c, store.ItemChange{Item: other, Owner: of(8), Level: visibility.Private, HideCounts: yes()})
	require.Equal(t, visibility.Item{Item: other, Owner: 8, Level: visibility.Private, State: visibility.Live, HideCounts: true}, now)
	step(store.ItemChange{}, full, false)
}

func testPutMembers(t *testing.T, c Catalog) {
	b, ofItem := store.Block{Blocker: 1, Blocked: 2}, store.Block{Item: item(1), Blocked: 2}
	f := store.Follow{Follower: 2, Followee: 1}
	for name, put := range map[string]func(on bool) bool{
		"block":         func(on bool) bool { return block(t, c, b, on) },
		"reverse block": func(on bool) bool { return block(t, c, store.Block{Blocker: 2, Blocked: 1}, on) },
		"item block":    func(on bool) bool { return block(t, c, ofItem, on) },
		"follow":        func(on bool) bool { return follow(t, c, f, on) },
		"follow back":   func(on bool) bool { return follow(t, c, store.Follow{Follower: 1, Followee: 2}, on) },
	} {
		for _, step := range []struct{ on, changed bool }{{false, false}, {true, true}, {true, false}, {false, true}, {false, false}, {true, true}} {
			require.Equal(t, step.changed, put(step.on), "%s %t", name, step.on)
		}
	}
}

// testFacts has one item of each kind and asks in no order, twice and for items
// that have no row.
func testFacts(t *testing.T, c Catalog) {
	const viewer, owner, stranger = 5, 6, 7
	put(t, c, store.ItemChange{Item: item(1), Owner: of(owner), Level: visibility.Followers})
	put(t, c, store.ItemChange{Item: item(2), Owner: of(stranger), HideCounts: yes()})
	put(t, c, store.ItemChange{Item: item(3)})
	put(t, c, store.ItemChange{Item: item(4), Owner: of(viewer), Level: visibility.Private})
	follow(t, c, store.Follow{Follower: viewer, Followee: owner}, true)
	follow(t, c, store.Follow{Follower: stranger, Followee: viewer}, true)
	for _, id := range []int64{2, 3, 9} {
		block(t, c, store.Block{Item: item(id), Blocked: viewer}, true)
	}
	block(t, c, store.Block{Item: item(1), Blocked: stranger}, true)

	live := visibility.Facts{Known: true, Level: visibility.Public, State: visibility.Live}
	want := map[int64]visibility.Facts{8: {}, 9: {Blocked: true}}
	for id, change := range map[int64]func(*visibility.Facts){
		1: func(f *visibility.Facts) { f.Owner, f.Level, f.Follows = owner, visibility.Followers, true },
		2: func(f *visibility.Facts) { f.Owner, f.HideCounts, f.Blocked = stranger, true, true },
		3: func(f *visibility.Facts) { f.Blocked = true },
		4: func(f *visibility.Facts) { f.Owner, f.Level = viewer, visibility.Private },
	} {
		f := live
		change(&f)
		want[id] = f
	}
	var asked []likes.Item
	for n := range int64(likes.MaxRead) {
		asked = append(asked, item([]int64{8, 1, 9, 4, 2, 3, 1}[n%7]))
	}
	for _, n := range []int{0, 1, 5, len(asked)} {
		for i, f := range facts(t, c, viewer, asked[:n]...) {
			require.Equal(t, want[int64(asked[i].ID)], f, "item %v", asked[i])
		}
	}
	anonymous := facts(t, c, 0, asked...)
	for i := range asked {
		f := want[int64(asked[i].ID)]
		f.Follows, f.Blocked = false, false
		require.Equal(t, f, anonymous[i], "nobody follows nobody and is not blocked: item %v", asked[i])
	}
}

// testBlocked shows blocks between viewer and owner in both directions.
func testBlocked(t *testing.T, c Catalog) {
	for id := int64(1); id <= 4; id++ {
		put(t, c, store.ItemChange{Item: item(id), Owner: of(likes.UserID(10 + id))})
	}
	put(t, c, store.ItemChange{Item: item(5)})
	block(t, c, store.Block{Blocker: 1, Blocked: 11}, true)
	block(t, c, store.Block{Blocker: 12, Blocked: 1}, true)
	block(t, c, store.Block{Blocker: 13, Blocked: 2}, true)
	requireBlocked := func(viewer likes.UserID, want ...bool) {
		t.Helper()
		got := make([]bool, 0, len(want))
		for _, f := range facts(t, c, viewer, item(1), item(2), item(3), item(4)) {
			got = append(got, f.Blocked)
		}
		require.Equal(t, want, got)
		out := []bool{true, true, true, true, true}
		require.NoError(t, c.Blocked(t.Context(), viewer, []likes.UserID{11, 12, 13, 14, 11}, out))
		require.Equal(t, append(want, want[0]), out)
	}
	requireBlocked(1, true, true, false, false)
	requireBlocked(2, false, false, true, false)
	requireBlocked(14, false, false, false, false)
	requireBlocked(0, false, false, false, false)
	require.False(t, facts(t, c, 1, item(5))[0].Blocked, "an item of nobody")
	block(t, c, store.Block{Blocker: 11, Blocked: 1}, true)
	block(t, c, store.Block{Blocker: 1, Blocked: 11}, false)
	requireBlocked(1, true, true, false, false)
	block(t, c, store.Block{Blocker: 11, Blocked: 1}, false)
	requireBlocked(1, false, true, false, false)
	require.NoError(t, c.Blocked(t.Context(), 1, nil, nil))
}

func testRestricts(t *testing.T, c Catalog) {
	restricts := func() bool {
		t.Helper()
		any, err := c.Restricts(t.Context())
		require.NoError(t, err)
		return any
	}
	require.False(t, restricts())
	block(t, c, store.Block{Blocker: 1, Blocked: 2}, true)
	follow(t, c, store.Follow{Follower: 1, Followee: 2}, true)
	require.False(t, restricts(), "they keep nobody from an item that has no owner")
	b := store.Block{Item: item(1), Blocked: 2}
	block(t, c, b, true)
	require.True(t, restricts())
	block(t, c, b, false)
	require.False(t, restricts())
	put(t, c, store.ItemChange{Item: item(1)})
	require.True(t, restricts())
}

// testCatalogInvalid wants every part that is out of range named, and nothing done.
func testCatalogInvalid(t *testing.T, c Catalog) {
	ctx := t.Context()
	item1, noItem, noType := item(1), likes.Item{Type: 1}, likes.Item{ID: 1}
	many := make([]likes.Item, likes.MaxRead+1)
	users := make([]likes.UserID, likes.MaxPage+1)
	for i := range many {
		many[i] = item1
	}
	for i := range users {
		users[i] = 1
	}
	item := func(change store.ItemChange) error { _, _, err := c.PutItem(ctx, change); return err }
	block := func(b store.Block) error { _, err := c.PutBlock(ctx, b, true); return err }
	follow := func(a, b likes.UserID) error {
		_, err := c.PutFollow(ctx, store.Follow{Follower: a, Followee: b}, true)
		return err
	}
	facts := func(viewer likes.UserID, items ...likes.Item) error {
		return c.Facts(ctx, viewer, items, make([]visibility.Facts, len(items)))
	}
	blocked := func(viewer likes.UserID, users ...likes.UserID) error {
		return c.Blocked(ctx, viewer, users, make([]bool, len(users)))
	}
	_, totals := c.Totals(ctx, 0)
	for _, bad := range []struct {
		says string
		err  error
	}{
		{"item_id", item(store.ItemChange{Item: noItem})},
		{"item_type", item(store.ItemChange{Item: noType})},
		{"owner_id", item(store.ItemChange{Item: item1, Owner: of(-1)})},
		{"visibility", item(store.ItemChange{Item: item1, Level: visibility.Private + 1})},
		{"state", item(store.ItemChange{Item: item1, State: visibility.Deleted + 1})},
		{"blocker_id", block(store.Block{Blocker: -1, Blocked: 2})},
		{"blocked_id", block(store.Block{Blocker: 1})},
		{"blocked_id", block(store.Block{Blocker: 1, Blocked: -2})},
		{"blocked_id", block(store.Block{Item: item1})},
		{"both", block(store.Block{Blocker: 1, Item: item1, Blocked: 2})},
		{"neither", block(store.Block{Blocked: 2})},
		{"item_id", block(store.Block{Item: noItem, Blocked: 2})},
		{"item_type", block(store.Block{Item: noType, Blocked: 2})},
		{"themselves", block(store.Block{Blocker: 2, Blocked: 2})},
		{"follower_id", follow(0, 1)},
		{"followee_id", follow(1, -1)},
		{"themselves", follow(1, 1)},
		{"viewer", facts(-1, item1)},
		{"items[1]: item_id", facts(1, item1, noItem)},
		{"items", facts(1, many...)},
		{"viewer", blocked(-1, 1)},
		{"users[1]: user_id", blocked(1, 2, 0)},
		{"users", blocked(1, users...)},
		{"user_id", totals},
	} {
		require.ErrorIs(t, bad.err, likes.ErrInvalid, bad.says)
		require.ErrorContains(t, bad.err, bad.says)
	}
	require.NoError(t, facts(1, many[1:]...))
	require.NoError(t, blocked(1, users[1:]...))
	restricts, err := c.Restricts(ctx)
	require.NoError(t, err)
	require.False(t, restricts)
	require.NoError(t, blocked(0, 1, 2))
	out := make([]bool, 1)
	require.NoError(t, c.Blocked(ctx, 2, []likes.UserID{1}, out))
	require.False(t, out[0])
}

// testPutEndedContext is testEndedContext for the catalog.
func testPutEndedContext(t *testing.T, s Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, item1 := s.PutItem(ctx, store.ItemChange{Item: item(1)})
	_, block := s.PutBlock(ctx, store.Block{Blocker: 1, Blocked: 2}, true)
	_, follow := s.PutFollow(ctx, store.Follow{Follower: 1, Followee: 2}, true)
	facts := s.Facts(ctx, 1, []likes.Item{item(1)}, make([]visibility.Facts, 1))
	_, restricts := s.Restricts(ctx)
	blocked := s.Blocked(ctx, 1, []likes.UserID{2}, make([]bool, 1))
	_, totals := s.Totals(ctx, 1)
	for _, err := range []error{item1, block, follow, facts, restricts, blocked, totals} {
		require.ErrorIs(t, err, likes.ErrUnavailable)
	}
	rows, err := s.Int(t.Context(), "select (select count(*) from items) + (select count(*) from blocks) + (select count(*) from follows)")
	require.NoError(t, err)
	require.Zero(t, rows)
}
