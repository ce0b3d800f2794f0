// Package fold reduces a batch of mutations to one write per edge and spreads
// the store's answers over the mutations again.
//
// Folding is not an optimisation alone: one statement may not name a row twice.
// What it promises is that nobody can tell a folded batch from the same
// mutations performed one after another in the batch's order: outcomes, counts
// and the final registers are the same.
package fold

import (
	"slices"
	"time"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

// Folder folds one batch at a time and reuses its memory from batch to batch. It
// is not safe for concurrent use: each lane has its own.
type Folder struct {
	order  []int32 // positions of the mutations, by edge, then position
	edgeOf []int32 // for each mutation, its index in writes
	itemOf []int32 // for each write, the index of its item

	writes  []store.Write
	written []store.Written
	state   []bool  // for each write, whether the edge is liked so far
	running []int64 // for each item, its count so far
	version []likes.CountVersion
}

// Issue folds issued mutations. clock is called once per edge; the clock of a
// write is greater than every After of its mutations.
func (f *Folder) Issue(ms []likes.Mutation, clock func() likes.Clock) []store.Write {
	f.group(ms)
	for w := range f.writes {
		f.writes[w].Clock = clock()
	}
	for i := range ms {
		m, w := &ms[i], &f.writes[f.edgeOf[i]]
		w.Clock = max(w.Clock, m.After.Next())
		liked := m.Op == likes.Set
		if liked && !w.Liked {
			w.LikedAt = began(m.LikedAt, w.Clock)
		}
		w.Restarted = w.Restarted || !liked
		w.Liked = liked
	}
	return f.writes
}

// Replay folds replayed mutations: of those on one edge the newest remains, of
// equally new ones the unlike (see [likes.Register.Replay]).
func (f *Folder) Replay(ms []likes.Mutation) []store.Write {
	f.group(ms)
	for i := range ms {
		m, w := &ms[i], &f.writes[f.edgeOf[i]]
		if !newer(m, w) {
			continue
		}
		w.Clock, w.Liked, w.LikedAt = m.Fixed, m.Op == likes.Set, began(m.LikedAt, m.Fixed)
	}
	return f.writes
}

// began returns when a like began, as precise as every store keeps it.
func began(at time.Time, clock likes.Clock) time.Time {
	if at.IsZero() {
		return clock.Time()
	}
	return at.Truncate(time.Microsecond).UTC()
}

func newer(m *likes.Mutation, w *store.Write) bool {
	return m.Fixed > w.Clock || m.Fixed == w.Clock && w.Liked && m.Op == likes.Clear
}

// Written returns the slice for the store's answers to the last fold's writes.
func (f *Folder) Written() []store.Written {
	f.written = slices.Grow(f.written[:0], len(f.writes))[:len(f.writes)]
	clear(f.written)
	return f.written
}

// group finds the edges of the batch and lists them in key order.
func (f *Folder) group(ms []likes.Mutation) {
	f.order = slices.Grow(f.order[:0], len(ms))[:len(ms)]
	for i := range f.order {
		f.order[i] = int32(i)
	}
	slices.SortFunc(f.order, func(a, b int32) int {
		if c := ms[a].Edge.Compare(ms[b].Edge); c != 0 {
			return c
		}
		return int(a - b)
	})
	f.edgeOf = slices.Grow(f.edgeOf[:0], len(ms))[:len(ms)]
	f.writes, f.itemOf = f.writes[:0], f.itemOf[:0]
	items := int32(-1)
	for k, i := range f.order {
		e := ms[i].Edge
		if k == 0 || ms[f.order[k-1]].Edge != e {
			if k == 0 || !sameCounter(f.writes[len(f.writes)-1].Edge, e) {
				items++
			}
			f.writes = append(f.writes, store.Write{Edge: e})
			f.itemOf = append(f.itemOf, items)
		}
		f.edgeOf[i] = int32(len(f.writes) - 1)
	}
	f.running = slices.Grow(f.running[:0], int(items)+1)[:items+1]
	f.version = slices.Grow(f.version[:0], int(items)+1)[:items+1]
}

func sameCounter(a, b likes.Edge) bool { return a.Counter == b.Counter && a.Item == b.Item }

// Issued answers issued mutations from the store's answers to their writes.
//
// The store knows each counter after the whole batch. Going back by the batch's
// own changes gives the count before it; going forward again in the batch's
// order gives every mutation the count just after itself, as if it had been
// alone. The version is that of the stored count that first includes it. A
// mutation of an erased user gets ErrErased and counts for nothing.
func (f *Folder) Issued(ms []likes.Mutation, written []store.Written, asOf time.Time, out []likes.Result) {
	f.state = slices.Grow(f.state[:0], len(f.writes))[:len(f.writes)]
	for w := range f.writes {
		if written[w].Erased {
			continue
		}
		f.running[f.itemOf[w]] = written[w].Count
		f.version[f.itemOf[w]] = written[w].Version
		f.state[w] = written[w].Was
	}
	for w := range f.writes {
		if !written[w].Erased {
			f.running[f.itemOf[w]] -= step(f.writes[w].Liked, written[w].Was)
		}
	}
	for i := range ms {
		w := f.edgeOf[i]
		if written[w].Erased {
			out[i] = likes.Result{Err: likes.ErasedError(ms[i].Edge.User)}
			continue
		}
		item := f.itemOf[w]
		liked := ms[i].Op == likes.Set
		outcome := likes.Unchanged
		if liked != f.state[w] {
			outcome = likes.Changed
			f.running[item] += step(liked, f.state[w])
			f.state[w] = liked
		}
		version := f.version[item]
		out[i] = likes.Result{
			Outcome: outcome,
			Version: likes.Version{Edge: ms[i].Edge, Epoch: version.Epoch, Clock: written[w].Clock},
			Count:   likes.Count{N: f.running[item], Version: version, AsOf: asOf, Source: likes.FromStore},
		}
	}
}

// step is what a change from was to liked adds to the count.
func step(liked, was bool) int64 {
	switch {
	case liked == was:
		return 0
	case liked:
		return 1
	default:
		return -1
	}
}

// Replayed answers replayed mutations. Only the one that remained of its edge can
// have been applied; the others are superseded by it, and all of an erased user.
func (f *Folder) Replayed(ms []likes.Mutation, written []store.Written, out []likes.Result) {
	for i := range ms {
		w := f.edgeOf[i]
		write, answer := &f.writes[w], &written[w]
		liked := ms[i].Op == likes.Set
		outcome := likes.Superseded
		if answer.Applied && ms[i].Fixed == write.Clock && liked == write.Liked {
			outcome = likes.Unchanged
			if answer.Was != liked {
				outcome = likes.Changed
				answer.Was = liked // an equal mutation behind this one changes nothing
			}
		}
		out[i] = likes.Result{Outcome: outcome, Version: likes.Version{Edge: ms[i].Edge, Clock: ms[i].Fixed}}
	}
}
