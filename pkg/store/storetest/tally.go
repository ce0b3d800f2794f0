package storetest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

// view is event number n on an item, added at the given microsecond.
func view(id int64, n byte, micros int64) store.Add {
	return store.Add{Key: store.Key{Counter: likes.Views, Item: item(id)}, Event: likes.EventID{n, 15: n}, At: at(micros)}
}

// add adds the events, in order, which must succeed.
func add(t testing.TB, s Store, adds ...store.Add) []store.Added {
	t.Helper()
	slices.SortFunc(adds, store.Add.Compare)
	out := make([]store.Added, len(adds))
	for i := range out { // a store overwrites whatever a reused slice held
		out[i] = store.Added{New: true, Count: -1}
	}
	require.NoError(t, s.Add(t.Context(), adds, out))
	return out
}

func tally(t testing.TB, s Store, k store.Key) store.CountRow {
	t.Helper()
	out := make([]store.CountRow, 1)
	require.NoError(t, s.Counts(t.Context(), k.Counter, []likes.Item{k.Item}, out))
	return out[0]
}

// testAddModel adds random batches of few events and compares with a set.
func testAddModel(t *testing.T, s Store) {
	const rounds, most = 80, 30
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 3))
	type key struct {
		store.Key
		event likes.EventID
	}
	events, counts := map[key]bool{}, map[store.Key]int64{}
	for round := range int64(rounds) {
		var adds []store.Add
		for range 1 + random.IntN(most) {
			a := view(1+random.Int64N(3), byte(1+random.IntN(100)), round)
			if random.IntN(3) == 0 {
				a.Counter = likes.Shares
			}
			if !slices.Contains(adds, a) {
				adds = append(adds, a)
			}
		}
		before := map[store.Key]store.CountRow{}
		for _, a := range adds {
			before[a.Key] = tally(t, s, a.Key)
		}
		out := add(t, s, adds...) // sorts adds
		for i, a := range adds {
			require.Equal(t, !events[key{a.Key, a.Event}], out[i].New, "%v", a)
			if out[i].New {
				events[key{a.Key, a.Event}] = true
				counts[a.Key]++
			}
		}
		for i, a := range adds {
			now := tally(t, s, a.Key)
			require.Equal(t, counts[a.Key], now.N)
			require.Equal(t, now, store.CountRow{N: out[i].Count, Version: out[i].Version})
			if was := before[a.Key]; was.N == now.N {
				require.Equal(t, was, now)
			} else {
				require.Greater(t, now.Version.N, was.Version.N)
				require.Positive(t, now.Version.Epoch)
			}
		}
	}
	rows, err := s.Int(t.Context(), "select count(*) from tally_events")
	require.NoError(t, err)
	require.Equal(t, int64(len(events)), rows)
}

// testAddKey shows what an event is counted by: all three of tally, item, id.
func testAddKey(t *testing.T, s Store) {
	share := view(10, 1, 1)
	share.Counter = likes.Shares
	typ := view(10, 1, 1)
	typ.Item.Type = math.MaxInt16
	last := view(10, 1, 1)
	last.Event = likes.EventID{15: 2}
	extreme := view(math.MaxInt64, 0xff, 1)
	all := []store.Add{view(10, 1, 1), view(11, 1, 1), view(10, 2, 1), share, typ, last, extreme}
	for _, a := range add(t, s, all...) {
		require.True(t, a.New)
	}
	for _, a := range add(t, s, all...) {
		require.False(t, a.New)
		require.Positive(t, a.Count)
	}
	require.Equal(t, int64(3), tally(t, s, view(10, 1, 1).Key).N)
	require.Equal(t, int64(1), tally(t, s, share.Key).N)
	require.Zero(t, count(t, s, item(10)).N, "a view is not a like")
	issue(t, s, set(1, 10, 1))
	require.Equal(t, int64(3), tally(t, s, view(10, 1, 1).Key).N, "a like is not a view")
	require.NoError(t, s.Add(t.Context(), nil, nil))
}

// testEqualAdds sends the same event many times at once: it is new to one of
// them, and nobody is told a count without it.
func testEqualAdds(t *testing.T, s Store) {
	const rounds, clients = 50, 10
	for round := range int64(rounds) {
		var first atomic.Int64
		parallel(t, clients, func(ctx context.Context, i int) error {
			adds := []store.Add{view(round+1, 1, int64(i)), view(round+1, 2, int64(i))}
			if i%2 == 0 { // an event of its own too, so that each batch moves the counter
				adds = append(adds, view(round+1, byte(10+i), int64(i)))
			}
			out := make([]store.Added, len(adds))
			err := s.Add(ctx, adds, out)
			for _, a := range out {
				if a.New {
					first.Add(1)
				}
				if err == nil && (a.Count < 2 || a.Count > 2+clients/2) {
					err = fmt.Errorf("count %d", a.Count)
				}
			}
			return err
		})
		require.Equal(t, int64(2+clients/2), first.Load())
		require.Equal(t, int64(2+clients/2), tally(t, s, view(round+1, 1, 0).Key).N)
	}
}

// testForget takes the oldest events first, in steps, and no count changes.
func testForget(t *testing.T, s Store) {
	var adds []store.Add
	for n := byte(1); n <= 20; n++ {
		adds = append(adds, view(10+int64(n%3), n, int64(n)))
	}
	add(t, s, adds...)
	forget := func(before time.Time, limit, want int) {
		t.Helper()
		n, err := s.Forget(t.Context(), before, limit)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	forget(at(1), 100, 0)
	forget(at(10), 4, 4)
	left, err := s.Int(t.Context(), "select count(*) from tally_events")
	require.NoError(t, err)
	require.Equal(t, int64(16), left)
	for n := byte(5); n <= 20; n++ {
		require.False(t, add(t, s, view(10+int64(n%3), n, 100))[0].New, "the oldest go first, and a repeat makes none older or younger")
	}
	forget(at(10), 100, 5)
	forget(at(10), 100, 0)
	for id, want := range map[int64]int64{10: 6, 11: 7, 12: 7} {
		require.Equal(t, want, tally(t, s, view(id, 1, 0).Key).N, "item %d", id)
	}
	again := add(t, s, view(11, 1, 200))[0]
	require.True(t, again.New, "whoever repeats a forgotten event counts it again")
	require.Equal(t, int64(8), again.Count)
	forget(at(1000), 100, 12)
}

// testTalliesAreNotAudited puts tallies before, between and behind the sets.
func testTalliesAreNotAudited(t *testing.T, s Store) {
	save := set(1, 10, 1)
	save.Edge.Counter = likes.Saves
	issue(t, s, set(1, 10, 1), set(2, 12, 1), save)
	for id := int64(1); id <= 30; id++ {
		share := view(id, 1, id)
		share.Counter = likes.Shares
		add(t, s, view(id, 1, id), share)
	}
	for _, limit := range []int{1, 2, 3, 100} {
		drifts, checked := walk(t, s, limit)
		require.Empty(t, drifts)
		require.Equal(t, 3, checked, "limit %d", limit)
	}
	require.NoError(t, s.Exec(t.Context(), "update counters set count = count + 5 where counter in (2, 4)"))
	drifts, _ := walk(t, s, 2)
	require.Equal(t, []store.Drift{{Key: store.Key{Counter: likes.Saves, Item: item(10)}, Stored: 6, Edges: 1}}, drifts)
	views := store.Key{Counter: likes.Views, Item: item(1)}
	_, err := s.AuditItem(t.Context(), []store.Key{{Counter: likes.Likes, Item: item(1)}, views})
	require.ErrorIs(t, err, likes.ErrInvalid)
	_, err = s.Repair(t.Context(), views)
	require.ErrorIs(t, err, likes.ErrInvalid)
	require.Equal(t, int64(6), tally(t, s, views).N, "nobody may recount it from edges")
}

// testAddEndedContext is testEndedContext for events.
func testAddEndedContext(t *testing.T, s Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.Add(ctx, []store.Add{view(10, 1, 1)}, make([]store.Added, 1))
	require.Error(t, err)
	require.ErrorIs(t, err, likes.ErrUnavailable)
	require.Zero(t, tally(t, s, view(10, 1, 1).Key).N)
	_, err = s.Forget(ctx, at(1), 1)
	require.ErrorIs(t, err, likes.ErrUnavailable)
}
