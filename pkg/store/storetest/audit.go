package storetest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

func key(id int64) store.Key { return store.Key{Counter: likes.Likes, Item: item(id)} }

// where selects one item in the tables.
func where(k store.Key) string {
	return fmt.Sprintf(" where counter = %d and item_type = %d and item_id = %d", k.Counter, k.Item.Type, k.Item.ID)
}

func tamper(t testing.TB, s Store, statement string) {
	t.Helper()
	require.NoError(t, s.Exec(t.Context(), statement))
}

// damage fills 30 items with 3 likes each, one with a tombstone only, and breaks
// some counters in every way there is.
func damage(t *testing.T, s Store) (want []store.Drift, counters int) {
	var ws []store.Write
	for id := int64(1); id <= 30; id++ {
		for user := int64(1); user <= 3; user++ {
			ws = append(ws, set(user, id, 1))
		}
	}
	issue(t, s, ws...)
	issue(t, s, clear(1, 31, 1))
	save := set(1, 5, 1)
	save.Edge.Counter = likes.Saves
	issue(t, s, save)
	saved := store.Key{Counter: likes.Saves, Item: item(5)}

	tamper(t, s, "update counters set count = count + 7"+where(key(2)))
	tamper(t, s, "update counters set count = -4"+where(key(9)))
	tamper(t, s, "delete from counters"+where(key(10)))
	tamper(t, s, "delete from edges"+where(key(11)))
	tamper(t, s, "delete from edges"+where(key(12))+" and user_id = 2")
	tamper(t, s, "update counters set count = 0"+where(saved))
	return []store.Drift{
		{Key: key(2), Stored: 10, Edges: 3},
		{Key: key(9), Stored: -4, Edges: 3},
		{Key: key(10), Stored: 0, Edges: 3, Missing: true},
		{Key: key(11), Stored: 3, Edges: 0},
		{Key: key(12), Stored: 3, Edges: 2},
		{Key: saved, Stored: 0, Edges: 1},
	}, 31
}

func testAudit(t *testing.T, s Store) {
	want, counters := damage(t, s)
	for _, limit := range []int{1, 3, 1000} {
		drifts, checked := walk(t, s, limit)
		require.Equal(t, want, drifts, "limit %d", limit)
		// Item 31 has a tombstone but no like: comparing it is allowed.
		require.Contains(t, []int{counters, counters + 1}, checked, "limit %d", limit)
	}
	for _, d := range want {
		before := versionOf(t, s, d.Key)
		got, err := s.Repair(t.Context(), d.Key)
		require.NoError(t, err)
		require.Equal(t, d, got)
		require.Greater(t, versionOf(t, s, d.Key), before, "a repair is a change of the count")
	}
	requireExact(t, s)
	_, err := s.Estimate(t.Context())
	require.NoError(t, err)
}

func versionOf(t testing.TB, s Store, k store.Key) int64 {
	t.Helper()
	row := make([]store.CountRow, 1)
	require.NoError(t, s.Counts(t.Context(), k.Counter, []likes.Item{k.Item}, row))
	return row[0].Version.N
}

func testAuditItem(t *testing.T, s Store) {
	damage(t, s)
	a, err := s.AuditItem(t.Context(), []store.Key{key(10), key(1), key(2), key(999)})
	require.NoError(t, err)
	require.Equal(t, 3, a.Checked, "of item 999 there is nothing to compare")
	require.Equal(t, store.Key{}, a.Next)
	require.ElementsMatch(t, []store.Drift{
		{Key: key(2), Stored: 10, Edges: 3},
		{Key: key(10), Stored: 0, Edges: 3, Missing: true},
	}, a.Drifts)

	for _, k := range []store.Key{key(1), key(999)} {
		before := versionOf(t, s, k)
		d, err := s.Repair(t.Context(), k)
		require.NoError(t, err)
		require.Equal(t, d.Edges, d.Stored)
		require.Equal(t, before, versionOf(t, s, k), "nothing to repair, nothing changed")
	}
}

func testRepairOnce(t *testing.T, s Store) {
	issue(t, s, set(1, 10, 1), set(2, 10, 1))
	for round := range 10 {
		statement := "update counters set count = count + 100"
		if round%2 == 1 {
			statement = "delete from counters"
		}
		tamper(t, s, statement+where(key(10)))
		const repairers = 8
		found := make(chan store.Drift, repairers)
		parallel(t, repairers, func(ctx context.Context, _ int) error {
			d, err := s.Repair(ctx, key(10))
			found <- d
			return err
		})
		close(found)
		repaired := 0
		for d := range found {
			if d.Stored != d.Edges {
				repaired++
			}
		}
		require.Equal(t, 1, repaired)
		require.Equal(t, int64(2), count(t, s, item(10)).N)
	}
}

// testRepairLive breaks and repairs counters while writers change them.
func testRepairLive(t *testing.T, s Store) {
	const writers, rounds = 4, 40
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var done sync.WaitGroup
	errs := make(chan error, writers)
	for w := range writers {
		done.Go(func() { errs <- toggle(ctx, t.Context(), s, int64(w+1), 10) })
	}
	for round := range rounds {
		statement := "update counters set count = count + 5"
		if round%2 == 1 {
			statement = "delete from counters"
		}
		tamper(t, s, statement+where(key(10)))
		_, err := s.Repair(t.Context(), key(10))
		require.NoError(t, err)
		a, err := s.AuditItem(t.Context(), []store.Key{key(10)})
		require.NoError(t, err)
		require.Empty(t, a.Drifts, "round %d", round)
	}
	stop()
	done.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	requireExact(t, s)
}

// toggle likes and unlikes one edge by turns until until ends.
func toggle(until, ctx context.Context, s Store, user, id int64) error {
	out := make([]store.Written, 1)
	for n := int64(0); until.Err() == nil; n++ {
		w := set(user, id, n)
		w.Liked = n%2 == 0
		if err := s.Commit(ctx, store.Commit{Writes: []store.Write{w}}, out); err != nil {
			return err
		}
		if out[0].Was == w.Liked {
			return fmt.Errorf("write %d of user %d found its own state", n, user)
		}
	}
	return nil
}
