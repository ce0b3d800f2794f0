package tiertest

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

var testItem = likes.Item{Type: 1, ID: 9}

func like(user likes.UserID, call, ret int64) Event {
	return Event{Client: int(user), Kind: KindLike, Edge: likes.Edge{Counter: likes.Likes, Item: testItem, User: user}, Call: call, Return: ret}
}

func unlike(user likes.UserID, call, ret int64) Event {
	e := like(user, call, ret)
	e.Kind = KindUnlike
	return e
}

func uncertain(e Event) Event {
	e.Uncertain = true
	return e
}

func reads(n, call, ret int64) Event {
	return Event{Kind: KindCount, Edge: likes.Edge{Counter: likes.Likes, Item: testItem}, Call: call, Return: ret, N: n}
}

func has(user likes.UserID, liked bool, call, ret int64) Event {
	e := like(user, call, ret)
	e.Kind, e.Liked = KindHas, liked
	return e
}

func changes(e Event, changed bool) Event {
	e.Exact, e.Changed = true, changed
	return e
}

func TestCheckCounts(t *testing.T) {
	tests := []struct {
		name      string
		events    []Event
		staleness time.Duration
		ok        bool
	}{
		{"nothing", []Event{reads(0, 1, 2)}, 0, true},
		{"a like out of nowhere", []Event{reads(1, 1, 2)}, 0, false},
		{"negative", []Event{reads(-1, 1, 2), unlike(1, 0, 9)}, 0, false},
		{"in flight: either", []Event{like(1, 10, 20), reads(0, 12, 13), reads(1, 12, 13)}, 0, true},
		{"before the call", []Event{like(1, 10, 20), reads(1, 8, 9)}, 0, false},
		{"touching the call", []Event{like(1, 10, 20), reads(1, 8, 10)}, 0, true},
		{"after the return", []Event{like(1, 10, 20), reads(0, 21, 22)}, 0, false},
		{"touching the return", []Event{like(1, 10, 20), reads(0, 20, 22)}, 0, true},
		{"stale within the bound", []Event{like(1, 10, 20), reads(0, 25, 26)}, 5, true},
		{"stale beyond the bound", []Event{like(1, 10, 20), reads(0, 26, 27)}, 5, false},
		{"counted twice", []Event{like(1, 10, 20), like(1, 30, 40), reads(2, 50, 60)}, 0, false},
		{"uncertain: either, for ever", []Event{uncertain(like(1, 10, open)), reads(0, 90, 91), reads(1, 95, 96), reads(0, 98, 99)}, 0, true},
		{"uncertain, closed by a barrier, then unliked", []Event{uncertain(like(1, 10, 20)), unlike(1, 30, 40), reads(1, 50, 60)}, 0, false},
		{"uncertain and still open after the unlike", []Event{uncertain(like(1, 10, open)), unlike(1, 30, 40), reads(1, 50, 60)}, 0, true},
		{"uncertain unlike makes nobody else's like doubtful", []Event{like(1, 1, 2), like(2, 1, 2), uncertain(unlike(1, 10, open)), reads(0, 50, 60)}, 0, false},
		{"overlapping like and unlike", []Event{like(1, 10, 30), unlike(1, 20, 40), reads(0, 50, 51), reads(1, 50, 51)}, 0, true},
		{"one after the other", []Event{like(1, 10, 19), unlike(1, 20, 40), reads(1, 50, 51)}, 0, false},
		{"a sum of instants that never was", []Event{like(1, 10, 11), like(2, 20, 21), unlike(1, 30, 31), reads(0, 25, 35)}, 0, false},
		{"passes through a value", []Event{like(1, 10, 11), like(2, 20, 21), unlike(1, 30, 31), unlike(2, 40, 41), reads(1, 22, 45)}, 0, true},
		{"a long window keeps the extremes", []Event{like(1, 10, 11), like(2, 20, 21), reads(0, 12, 50)}, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := CheckCounts(tt.events, tt.staleness)
			require.Equal(t, tt.ok, err == nil, "%v", err)
		})
	}
}

// TestCheckCountsAgainstTheTruth simulates a counter whose instants are known:
// no true value is refused, and one off by more than the writes in flight is.
func TestCheckCountsAgainstTheTruth(t *testing.T) {
	const users, writes = 40, 1000
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var events []Event
	free := map[likes.UserID]int64{} // when the user's last call returned
	type effect struct {
		at   int64
		user likes.UserID
		like bool
	}
	var effects []effect
	for n := range writes {
		u := likes.UserID(1 + rng.IntN(users))
		call := max(free[u]+1, int64(n)*10)
		at := call + rng.Int64N(50)
		ret := at + rng.Int64N(50)
		free[u] = ret
		e := like(u, call, ret)
		if rng.IntN(2) == 0 {
			e.Kind = KindUnlike
		}
		events = append(events, e)
		effects = append(effects, effect{at, u, e.Kind == KindLike})
	}
	truth := func(t int64) (n int64) {
		last := map[likes.UserID]effect{}
		for _, f := range effects {
			if l, ok := last[f.user]; f.at <= t && (!ok || l.at <= f.at) {
				last[f.user] = f
			}
		}
		for _, f := range last {
			if f.like {
				n++
			}
		}
		return n
	}
	caught := 0
	for range 200 {
		at := rng.Int64N(writes * 10)
		r := reads(truth(at), at-rng.Int64N(5), at+rng.Int64N(5))
		require.NoError(t, CheckCounts(append(events[:len(events):len(events)], r), 0))
		r.N += 12
		if CheckCounts(append(events[:len(events):len(events)], r), 0) != nil {
			caught++
		}
	}
	require.Greater(t, caught, 150, "the bounds say nothing")
}

func TestCheckEdges(t *testing.T) {
	tests := []struct {
		name   string
		events []Event
		ok     bool
	}{
		{"reads its write", []Event{like(1, 1, 2), has(1, true, 3, 4)}, true},
		{"false no", []Event{like(1, 1, 2), has(1, false, 3, 4)}, false},
		{"lost unlike", []Event{like(1, 1, 2), unlike(1, 3, 4), has(1, true, 5, 6)}, false},
		{"uncertain, then either, but no way back", []Event{uncertain(like(1, 1, open)), has(1, true, 3, 4), has(1, false, 5, 6)}, false},
		{"uncertain comes late", []Event{uncertain(like(1, 1, open)), has(1, false, 3, 4), has(1, true, 5, 6)}, true},
		{"uncertain cannot come past the barrier", []Event{uncertain(like(1, 1, 4)), has(1, false, 5, 6), has(1, true, 7, 8)}, false},
		{"changed twice", []Event{changes(like(1, 1, 5), true), changes(like(1, 2, 6), true)}, false},
		{"changed once", []Event{changes(like(1, 1, 5), true), changes(like(1, 2, 6), false)}, true},
		{"changed by nobody", []Event{changes(like(1, 1, 2), false)}, false},
		{"edges are apart", []Event{like(1, 1, 2), has(2, false, 3, 4)}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := CheckEdges(tt.events, 0)
			require.Equal(t, tt.ok, err == nil, "%v", err)
		})
	}
	require.NoError(t, CheckEdges([]Event{like(1, 1, 2), has(1, false, 5, 6)}, 3), "stale within the bound")
	require.Error(t, CheckEdges([]Event{like(1, 1, 2), has(1, false, 6, 7)}, 3), "stale beyond the bound")
}

func TestCheckLast(t *testing.T) {
	g := like(1, 0, 0).Edge
	events := []Event{like(1, 1, 2), unlike(1, 3, 4)}
	require.Empty(t, CheckLast(events, map[likes.Edge]bool{g: false}))
	require.ErrorContains(t, CheckLast(events, map[likes.Edge]bool{g: true})[g], "lost")
	events = append(events, uncertain(like(1, 5, open)))
	require.Empty(t, CheckLast(events, map[likes.Edge]bool{g: true}))
	require.Empty(t, CheckLast(events, map[likes.Edge]bool{g: false}))
	events = append(events, like(1, 7, 8))
	require.Len(t, CheckLast(events, map[likes.Edge]bool{g: false}), 1)
}

func TestCheckVersions(t *testing.T) {
	at := func(n, version, call, ret int64) Event {
		r := reads(n, call, ret)
		r.Version = likes.CountVersion{Epoch: 1, N: version}
		return r
	}
	require.NoError(t, CheckVersions([]Event{at(1, 1, 1, 2), at(2, 2, 3, 4), at(1, 1, 2, 6)}, 0))
	require.Error(t, CheckVersions([]Event{at(1, 1, 1, 2), at(2, 1, 3, 4)}, 0), "two values")
	require.Error(t, CheckVersions([]Event{at(2, 2, 1, 2), at(1, 1, 3, 4)}, 0), "back")
	require.NoError(t, CheckVersions([]Event{at(2, 2, 1, 2), at(1, 1, 3, 4)}, time.Second), "stale is allowed")
}

func TestHistory(t *testing.T) {
	h := NewHistory()
	call := h.Begin()
	_, inFlight := h.Load()
	require.Equal(t, 1, inFlight)
	e := like(1, call, 0)
	h.End(&e)
	e = uncertain(like(1, h.Begin(), 0))
	h.End(&e)
	h.Begin()
	h.End()
	acked, inFlight := h.Load()
	require.Equal(t, []int{1, 0}, []int{acked, inFlight})
	require.Equal(t, int64(open), h.Events()[1].Return)
	h.Barrier(func(client int) bool { return client == 2 })
	require.Equal(t, int64(open), h.Events()[1].Return, "somebody else's barrier")
	h.Barrier(func(client int) bool { return client == 1 })
	require.Less(t, h.Events()[1].Return, int64(open))
	name, err := WriteFile(h.Events())
	require.NoError(t, err)
	require.NoError(t, os.Remove(name))
}
