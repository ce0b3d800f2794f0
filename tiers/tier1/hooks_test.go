package tier1_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/clock"
	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/store/sqlite"
	"likectl/tiers"
	"likectl/tiers/tier1"
)

// recorded is what the hooks were told.
type recorded struct {
	mu       sync.Mutex
	writes   map[store.Key]int
	laneOf   map[store.Key]int
	outcomes map[likes.Counter]map[likes.Outcome]int
}

func (r *recorded) hooks(t *testing.T) tier1.Hooks {
	return tier1.Hooks{
		Wrote: func(lane int, writes []store.Write, written []store.Written) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if len(writes) != len(written) {
				t.Errorf("%d writes, %d answers", len(writes), len(written))
			}
			for i, w := range writes {
				if i > 0 && writes[i-1].Edge.Compare(w.Edge) >= 0 {
					t.Errorf("%v before %v", writes[i-1].Edge, w.Edge)
				}
				key := store.Key{Counter: w.Edge.Counter, Item: w.Edge.Item}
				if other, ok := r.laneOf[key]; ok && other != lane {
					t.Errorf("%v in lanes %d and %d", key, other, lane)
				}
				r.laneOf[key] = lane
				r.writes[key]++
			}
		},
		Answered: func(ms []likes.Mutation, results []likes.Result) {
			r.mu.Lock()
			defer r.mu.Unlock()
			for i, m := range ms {
				if r.outcomes[m.Edge.Counter] == nil {
					r.outcomes[m.Edge.Counter] = map[likes.Outcome]int{}
				}
				r.outcomes[m.Edge.Counter][results[i].Outcome]++
			}
		},
	}
}

// TestHooksAreToldWhatWasCommitted and nothing else: what users issued, folded and
// not, but no replays.
func TestHooksAreToldWhatWasCommitted(t *testing.T) {
	db, err := sqlite.Open(t.Context(), t.TempDir()+"/likes.db")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	r := &recorded{writes: map[store.Key]int{}, laneOf: map[store.Key]int{}, outcomes: map[likes.Counter]map[likes.Outcome]int{}}
	s, err := tier1.Start(db, clock.New(1), tiers.Contract(tiers.SQLite), limits, r.hooks(t))
	require.NoError(t, err)

	const users, items = 20, 5
	want := map[likes.Counter]map[likes.Outcome]int{likes.Likes: {}, likes.Saves: {}, likes.Views: {}}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for user := range likes.UserID(users) {
		wg.Go(func() {
			for id := range likes.ItemID(items) {
				e := likes.Edge{Counter: likes.Likes, Item: likes.Item{Type: 1, ID: id + 1}, User: user + 1}
				saved, viewed := e, e
				saved.Counter, viewed.Counter = likes.Saves, likes.Views
				ms := []likes.Mutation{
					{Op: likes.Set, Edge: e},
					{Op: likes.Set, Edge: e}, // folds into the first
					{Op: likes.Clear, Edge: saved},
					{Op: likes.Add, Edge: viewed, Event: likes.NewEventID(time.Now())},
					{Op: likes.Set, Edge: e, Fixed: 1}, // a replay
				}
				for i, result := range s.Apply(t.Context(), ms) {
					if result.Err != nil {
						t.Error(result.Err)
					}
					if ms[i].Fixed == 0 {
						mu.Lock()
						want[ms[i].Edge.Counter][result.Outcome]++
						mu.Unlock()
					}
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, s.Close(context.Background()))
	require.Equal(t, want, r.outcomes)
	require.Equal(t, map[likes.Outcome]int{likes.Changed: users * items, likes.Unchanged: users * items}, r.outcomes[likes.Likes])
	require.Len(t, r.writes, 2*items)
	for key, n := range r.writes {
		require.Equal(t, users, n, "%v: one write for two likes", key)
	}
}
