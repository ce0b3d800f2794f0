package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"likectl/pkg/likes"
	"likectl/pkg/memory"
	"likectl/pkg/store"
)

// testMerge merges a user who likes items 1 to 10 into one who likes 6 to 15, in
// steps, and goes on with what was interrupted.
func testMerge(t *testing.T, all []PeopleStore) {
	s := all[0]
	var ws []store.Write
	for id := int64(1); id <= 15; id++ {
		if id <= 10 {
			ws = append(ws, set(1, id, id))
		}
		if id >= 6 {
			ws = append(ws, set(2, id, 100-id))
		}
		ws = append(ws, set(3, id, 1))
	}
	put(t, s, false, ws...)
	before := likesOf(t, s, 15)
	begin(t, s, 2, 1)
	_, err := s.StepErase(t.Context(), 1, 3)
	require.NoError(t, err)
	e := erase(t, all[len(all)-1], 1, 3)
	require.True(t, e.Merged)
	require.EqualValues(t, 10, e.Edges)
	require.Zero(t, e.Tombstones+e.Relations)
	requireGone(t, s, 1)
	after := likesOf(t, s, 15)
	for i := range after {
		fell := int64(0)
		if id := i + 1; id >= 6 && id <= 10 {
			fell = 1
		}
		require.Equal(t, before[i]-fell, after[i], "item %d", i+1)
	}
	for i, r := range registersOf(t, s, 2, 15) {
		id := int64(i + 1)
		since := at(id)
		if id > 10 {
			since = at(100 - id)
		}
		require.True(t, r.Liked, id)
		require.Equal(t, since, r.LikedAt, "since the earlier of the two: item %d", id)
	}
	require.Equal(t, []store.Written{{Erased: true}}, put(t, s, true, set(1, 20, 1<<40)))
	require.True(t, put(t, s, false, clear(2, 1, 200))[0].Was, "who received them can take them back")
}

// testMergeRegisters compares every pair of registers with [likes.Register.Union].
func testMergeRegisters(t *testing.T, all []PeopleStore) {
	s := all[0]
	kinds := []store.Write{{}, set(1, 1, 10), set(1, 1, 20), clear(1, 1, 10), clear(1, 1, 20)}
	sinceBefore := set(1, 1, 20)
	sinceBefore.LikedAt = at(5)
	kinds = append(kinds, sinceBefore)
	var ws []store.Write
	var want []likes.Register
	for _, a := range kinds {
		for _, b := range kinds {
			var union likes.Register
			for user, w := range []store.Write{a, b} {
				w.Edge = edge(int64(user+1), int64(len(want)+1))
				if w.Clock != 0 {
					ws = append(ws, w)
				}
			}
			if b.Clock != 0 {
				union = likes.Register{Liked: b.Liked, Clock: b.Clock, LikedAt: b.LikedAt}
			}
			if a.Clock != 0 {
				union = union.Union(likes.Register{Liked: a.Liked, Clock: a.Clock, LikedAt: a.LikedAt})
			}
			want = append(want, union)
		}
	}
	put(t, s, true, ws...)
	begin(t, s, 2, 1)
	e := erase(t, s, 1, 4)
	require.EqualValues(t, (len(kinds)-1)*len(kinds), e.Edges+e.Tombstones)
	n := int64(len(want))
	counts := likesOf(t, s, n)
	for i, r := range registersOf(t, s, 2, n) {
		require.Equal(t, plain(want[i]), plain(r), "%d", i)
		require.Equal(t, want[i].Liked, counts[i] == 1, "%d", i)
	}
	requireGone(t, s, 1)
}

// plain leaves out what has no meaning.
func plain(r likes.Register) likes.Register {
	if !r.Liked {
		r.LikedAt = time.Time{}
	}
	r.LikedAt = r.LikedAt.UTC()
	return r
}

// testPeopleProgram runs random programs beside the oracle. The runs share the
// data, on users of their own.
func testPeopleProgram(t *testing.T, s PeopleStore) {
	run := int64(0)
	rapid.Check(t, func(rt *rapid.T) {
		run++
		p := program{t: rt, s: s, oracle: memory.New(), base: run * 100}
		for range rapid.IntRange(1, 25).Draw(rt, "length") {
			p.step()
		}
		p.compare()
	})
}

// program is one random program: four users, three items.
type program struct {
	t      *rapid.T
	s      PeopleStore
	oracle *memory.Service
	base   int64
}

func (p *program) user(name string) likes.UserID {
	return likes.UserID(p.base + rapid.Int64Range(1, 4).Draw(p.t, name))
}

func (p *program) step() {
	ctx := p.t.Context()
	switch rapid.IntRange(0, 9).Draw(p.t, "kind") {
	case 0:
		users, into := []likes.UserID{p.user("who")}, likes.UserID(0)
		if rapid.Bool().Draw(p.t, "merge") {
			into = p.user("into")
		}
		want, got := p.oracle.BeginErase(ctx, users, into), p.s.BeginErase(ctx, users, into)
		require.Equal(p.t, fmt.Sprint(want), fmt.Sprint(got))
	case 1, 2:
		user, limit := p.user("who"), rapid.IntRange(1, 3).Draw(p.t, "limit")
		_, want := p.oracle.StepErase(ctx, user, limit)
		_, got := p.s.StepErase(ctx, user, limit)
		require.Equal(p.t, fmt.Sprint(want), fmt.Sprint(got))
		for len(p.pending(user)) > 0 { // the order of rows within an erasure is the store's
			p.finish(user)
		}
	default:
		p.write()
	}
}

// pending returns the user if its erasure is unfinished on either side.
func (p *program) pending(user likes.UserID) (users []likes.UserID) {
	for _, s := range []store.People{p.oracle, p.s} {
		e, there, err := s.Erasure(p.t.Context(), user)
		require.NoError(p.t, err)
		if there && e.Finished.IsZero() {
			users = append(users, user)
		}
	}
	return users
}

func (p *program) finish(user likes.UserID) {
	for _, s := range []store.People{p.oracle, p.s} {
		_, err := s.StepErase(p.t.Context(), user, 3)
		require.NoError(p.t, err)
	}
}

// write does one operation on both sides, with the oracle's clock.
func (p *program) write() {
	w := set(int64(p.user("user")), p.base+rapid.Int64Range(1, 3).Draw(p.t, "item"), rapid.Int64Range(1, 9).Draw(p.t, "micros"))
	w.Liked = rapid.IntRange(0, 3).Draw(p.t, "liked") > 0
	isReplay := rapid.Bool().Draw(p.t, "replay")
	m := likes.Mutation{Op: likes.Clear, Edge: w.Edge, LikedAt: w.LikedAt}
	if w.Liked {
		m.Op = likes.Set
	}
	if isReplay {
		m.Fixed = w.Clock
	}
	r := p.oracle.Apply(p.t.Context(), []likes.Mutation{m})[0]
	if !isReplay && r.Err == nil {
		w.Clock = r.Version.Clock
	}
	_, gone, err := p.oracle.Erasure(p.t.Context(), w.Edge.User)
	require.NoError(p.t, err)
	out := make([]store.Written, 1)
	require.NoError(p.t, p.s.Commit(p.t.Context(), store.Commit{Replay: isReplay, Writes: []store.Write{w}}, out))
	require.Equal(p.t, gone, out[0].Erased)
	require.Equal(p.t, r.Err == nil && r.Outcome != likes.Superseded, out[0].Applied)
	if out[0].Applied {
		require.Equal(p.t, r.Outcome == likes.Changed, out[0].Was != w.Liked)
	}
	if !isReplay && !gone {
		require.Equal(p.t, r.Count.N, out[0].Count)
	}
}

func (p *program) compare() {
	ctx := p.t.Context()
	items := []likes.Item{item(p.base + 1), item(p.base + 2), item(p.base + 3)}
	rows := make([]store.CountRow, len(items))
	require.NoError(p.t, p.s.Counts(ctx, likes.Likes, items, rows))
	for i, c := range p.oracle.Counts(ctx, likes.Likes, items, nil) {
		require.Equal(p.t, c.N, rows[i].N)
	}
	for user := likes.UserID(p.base + 1); user <= likes.UserID(p.base+4); user++ {
		registers := make([]likes.Register, len(items))
		require.NoError(p.t, p.s.Registers(ctx, likes.Likes, user, items, registers))
		for i, m := range p.oracle.Has(ctx, likes.Likes, user, items, nil) {
			require.Equal(p.t, likes.Register{Liked: m.Liked, Clock: m.Clock, LikedAt: m.LikedAt}, plain(registers[i]), "user %d", user)
		}
		var sides [2]store.Erasure
		var rest [2]store.Remains
		for i, s := range []store.People{p.oracle, p.s} {
			var err error
			sides[i], _, err = s.Erasure(ctx, user)
			require.NoError(p.t, err)
			sides[i].User, sides[i].Begun, sides[i].Finished = store.UserHash{}, time.Time{}, time.Time{}
			rest[i], err = s.Remains(ctx, user)
			require.NoError(p.t, err)
		}
		require.Equal(p.t, sides[0], sides[1])
		require.Equal(p.t, rest[0], rest[1])
	}
	unfinished, err := p.s.Unfinished(ctx, store.MaxErase)
	require.NoError(p.t, err)
	for user := likes.UserID(p.base + 1); user <= likes.UserID(p.base+4); user++ {
		require.Equal(p.t, slices.Contains(unfinished, user), len(p.pending(user)) == 2)
	}
}
