package storetest

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

// model is the naive store: registers by the rules of pkg/likes, counts by
// counting.
type model struct {
	registers map[likes.Edge]likes.Register
	versions  map[store.Key]likes.CountVersion // last seen
}

func (m *model) count(k store.Key) (n int64) {
	for e, r := range m.registers {
		if r.Liked && (store.Key{Counter: e.Counter, Item: e.Item}) == k {
			n++
		}
	}
	return n
}

// testModel drives random batches of both kinds over a few users and items, so
// that most writes meet a row, and compares everything after each.
func testModel(t *testing.T, s Store) {
	const rounds, most = 120, 24
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	m := model{registers: map[likes.Edge]likes.Register{}, versions: map[store.Key]likes.CountVersion{}}
	for range rounds {
		c := store.Commit{Replay: random.IntN(3) == 0}
		for range 1 + random.IntN(most) {
			// Few clocks, so that equal and older ones are common.
			w := set(1+random.Int64N(6), 1+random.Int64N(4), random.Int64N(40))
			w.Liked = random.IntN(3) > 0
			w.Edge.Item.Type = likes.ItemType(1 + random.IntN(2))
			if random.IntN(4) == 0 {
				w.Edge.Counter = likes.Saves
			}
			if !slices.ContainsFunc(c.Writes, func(o store.Write) bool { return o.Edge == w.Edge }) {
				c.Writes = append(c.Writes, w)
			}
		}
		sorted(c.Writes)
		m.check(t, s, c, commit(t, s, c))
	}
	m.compare(t, s)
}

// check applies the batch to the model and compares the answers.
func (m *model) check(t *testing.T, s Store, c store.Commit, out []store.Written) {
	t.Helper()
	before := make(map[store.Key]int64)
	for _, w := range c.Writes {
		k := store.Key{Counter: w.Edge.Counter, Item: w.Edge.Item}
		before[k] = m.count(k)
	}
	for i, w := range c.Writes {
		old := m.registers[w.Edge]
		now, applied := w.Over(old, c.Replay)
		m.registers[w.Edge] = now
		if !c.Replay {
			require.True(t, out[i].Applied, w.Edge)
			require.Equal(t, old.Liked, out[i].Was, w.Edge)
			require.Equal(t, now.Clock, out[i].Clock, w.Edge)
			continue
		}
		want := store.Written{}
		if applied {
			want = store.Written{Applied: true, Was: old.Liked, Clock: now.Clock}
		}
		require.Equal(t, want, out[i], "%v over %+v by %+v", w.Edge, old, w)
	}
	for k, n := range before {
		row := make([]store.CountRow, 1)
		require.NoError(t, s.Counts(t.Context(), k.Counter, []likes.Item{k.Item}, row))
		require.Equal(t, m.count(k), row[0].N, k)
		seen := m.versions[k]
		if n == m.count(k) {
			require.Equal(t, seen, row[0].Version, "the version of a count that did not change")
		} else {
			require.Greater(t, row[0].Version.N, seen.N, "the version of a count that changed")
			require.Positive(t, row[0].Version.Epoch)
		}
		m.versions[k] = row[0].Version
		for i, w := range c.Writes {
			if !c.Replay && (store.Key{Counter: w.Edge.Counter, Item: w.Edge.Item}) == k {
				require.Equal(t, row[0], store.CountRow{N: out[i].Count, Version: out[i].Version}, w.Edge)
			}
		}
	}
}

// compare reads everything back in every way there is.
func (m *model) compare(t *testing.T, s Store) {
	t.Helper()
	likers, likedBy := map[store.Key][]likes.Member{}, map[likes.Edge][]likes.Member{}
	for e, want := range m.registers {
		got := register(t, s, e)
		if !want.Liked {
			want.LikedAt, got.LikedAt = time.Time{}, time.Time{}
		}
		require.Equal(t, want, got, e)
		if want.Liked {
			k, u := store.Key{Counter: e.Counter, Item: e.Item}, likes.Edge{Counter: e.Counter, User: e.User}
			likers[k] = append(likers[k], likes.Member{Edge: e, LikedAt: want.LikedAt})
			likedBy[u] = append(likedBy[u], likes.Member{Edge: e, LikedAt: want.LikedAt})
		}
	}
	for k, want := range likers {
		slices.SortFunc(want, func(a, b likes.Member) int { return cmp.Compare(a.Edge.User, b.Edge.User) })
		got, err := s.Likers(t.Context(), k.Counter, k.Item, 0, likes.MaxPage)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for u, want := range likedBy {
		slices.SortFunc(want, func(a, b likes.Member) int {
			return cmp.Or(cmp.Compare(a.Edge.Item.Type, b.Edge.Item.Type), cmp.Compare(b.Edge.Item.ID, a.Edge.Item.ID))
		})
		got, err := s.LikedBy(t.Context(), u.Counter, u.User, likes.Item{}, likes.MaxPage)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	requireExact(t, s)
}
