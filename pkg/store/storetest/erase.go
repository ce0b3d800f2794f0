package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

// testErasersAtOnce lets many step one user's erasure: each row is counted once.
func testErasersAtOnce(t *testing.T, all []PeopleStore) {
	const items = 120
	var ws []store.Write
	for id := int64(1); id <= items; id++ {
		ws = append(ws, set(1, id, 1), set(2, id, 1))
	}
	put(t, all[0], false, ws...)
	begin(t, all[0], 0, 1)
	parallel(t, 4, func(ctx context.Context, i int) error {
		for {
			e, err := all[i%len(all)].StepErase(ctx, 1, 7)
			if err != nil || !e.Finished.IsZero() {
				return err
			}
		}
	})
	e := erase(t, all[0], 1, 1)
	require.EqualValues(t, items, e.Edges)
	for _, n := range likesOf(t, all[0], items) {
		require.EqualValues(t, 1, n)
	}
	requireGone(t, all[0], 1)
}

const (
	raceItems = 40
	raceUser  = 1 // who is erased or merged
	raceInto  = 2
)

// race is writers that like and unlike for a user and for others until they are
// stopped, all over the same items.
type race struct {
	all     []PeopleStore
	writes  atomic.Int64
	enough  chan struct{} // closed after so many writes
	begun   atomic.Bool   // BeginErase has returned
	stopped atomic.Bool
	refused atomic.Int64
}

const beforeErase, afterErase = 300, 1000

// write does one batch of several users, and checks that nothing of the erased
// one is applied once its erasure has begun.
func (r *race) write(ctx context.Context, s PeopleStore, random *rand.Rand, isReplay bool) error {
	byEdge := make(map[likes.Edge]store.Write)
	for range 12 {
		w := set(1+random.Int64N(5), 1+random.Int64N(raceItems), random.Int64N(1000))
		w.Liked = random.IntN(3) > 0
		byEdge[w.Edge] = w
	}
	c := store.Commit{Replay: isReplay}
	for _, w := range byEdge {
		c.Writes = append(c.Writes, w)
	}
	sorted(c.Writes)
	begun := r.begun.Load()
	out := make([]store.Written, len(c.Writes))
	if err := s.Commit(ctx, c, out); err != nil {
		return err
	}
	for i, w := range c.Writes {
		if w.Edge.User != raceUser {
			if out[i].Erased {
				return fmt.Errorf("%v is refused", w.Edge)
			}
			continue
		}
		if out[i].Erased {
			r.refused.Add(1)
		} else if begun {
			return fmt.Errorf("%v was written after its user's erasure had begun: %+v", w.Edge, out[i])
		}
		if r.writes.Add(1) == beforeErase {
			close(r.enough)
		}
	}
	return nil
}

// run writes while during happens, and until so many writes of the user were
// refused that the race was one.
func (r *race) run(t *testing.T, during func()) {
	r.enough = make(chan struct{})
	const writers = 6
	var done sync.WaitGroup
	errs := make([]error, writers)
	for i := range writers {
		done.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 77))
			for errs[i] == nil && !r.stopped.Load() {
				errs[i] = r.write(t.Context(), r.all[i%len(r.all)], random, i%3 == 2)
			}
		})
	}
	finish := func() {
		r.stopped.Store(true)
		done.Wait()
	}
	defer finish()
	select {
	case <-r.enough:
	case <-t.Context().Done():
		require.FailNow(t, "the writers do not get on")
	}
	during()
	for r.writes.Load() < afterErase || r.refused.Load() < beforeErase {
		random := rand.New(rand.NewPCG(uint64(r.writes.Load()), 78))
		require.NoError(t, r.write(t.Context(), r.all[0], random, false))
	}
	finish()
	for _, err := range errs {
		require.NoError(t, err)
	}
	t.Logf("%d writes of the user, %d refused", r.writes.Load(), r.refused.Load())
	requireGone(t, r.all[0], raceUser)
	require.Equal(t, []store.Written{{Erased: true}}, put(t, r.all[0], true, set(raceUser, 1, 1<<40)))
	requireGone(t, r.all[0], raceUser)
	counts := make([]int64, raceItems)
	for user := likes.UserID(1); user <= 5; user++ {
		for i, register := range registersOf(t, r.all[0], user, raceItems) {
			if register.Liked {
				counts[i]++
			}
		}
	}
	require.Equal(t, counts, likesOf(t, r.all[0], raceItems), "every count equals its edges")
}

func (r *race) erase(t *testing.T, into likes.UserID) store.Erasure {
	begin(t, r.all[0], into, raceUser)
	r.begun.Store(true)
	return erase(t, r.all[len(r.all)-1], raceUser, 3)
}

// testEraseUnderWriters erases a user who writes on, among others who write to
// the same items.
func testEraseUnderWriters(t *testing.T, all []PeopleStore) {
	r := race{all: all}
	r.run(t, func() { require.Positive(t, r.erase(t, 0).Edges) })
}

// testMergeUnderWriters merges a user who writes on into another one who does.
func testMergeUnderWriters(t *testing.T, all []PeopleStore) {
	r := race{all: all}
	r.run(t, func() { require.Positive(t, r.erase(t, raceInto).Edges) })
}
