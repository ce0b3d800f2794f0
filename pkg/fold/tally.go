package fold

import (
	"slices"
	"time"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

// Tally is a Folder for Adds: it reduces a batch to one add per event and
// spreads the store's answers again. Nobody can tell a folded batch from the
// same Adds performed one after another. It is not safe for concurrent use.
type Tally struct {
	order  []int32 // positions of the mutations, by tally, item and event, then position
	addOf  []int32 // for each mutation, its index in adds
	itemOf []int32 // for each add, the index of its item

	adds    []store.Add
	added   []store.Added
	taken   []bool  // for each add, whether a mutation has been told that it was new
	running []int64 // for each item, its count so far
}

// Fold folds Adds that are given to the store at an instant.
func (f *Tally) Fold(ms []likes.Mutation, at time.Time) []store.Add {
	at = at.Truncate(time.Microsecond).UTC()
	f.order = slices.Grow(f.order[:0], len(ms))[:len(ms)]
	for i := range f.order {
		f.order[i] = int32(i)
	}
	slices.SortFunc(f.order, func(a, b int32) int {
		if c := addOf(&ms[a], at).Compare(addOf(&ms[b], at)); c != 0 {
			return c
		}
		return int(a - b)
	})
	f.addOf = slices.Grow(f.addOf[:0], len(ms))[:len(ms)]
	f.adds, f.itemOf = f.adds[:0], f.itemOf[:0]
	items := int32(-1)
	for _, i := range f.order {
		add, last := addOf(&ms[i], at), len(f.adds)-1
		if last < 0 || f.adds[last] != add {
			if last < 0 || f.adds[last].Key != add.Key {
				items++
			}
			f.adds = append(f.adds, add)
			f.itemOf = append(f.itemOf, items)
			last++
		}
		f.addOf[i] = int32(last)
	}
	f.running = slices.Grow(f.running[:0], int(items)+1)[:items+1]
	return f.adds
}

func addOf(m *likes.Mutation, at time.Time) store.Add {
	return store.Add{Key: store.Key{Counter: m.Edge.Counter, Item: m.Edge.Item}, Event: m.Event, At: at}
}

// Added returns the slice for the store's answers to the last fold's adds.
func (f *Tally) Added() []store.Added {
	f.added = slices.Grow(f.added[:0], len(f.adds))[:len(f.adds)]
	clear(f.added)
	return f.added
}

// Results answers the mutations from the store's answers to their adds. The
// first mutation of an event that is new was counted, the others repeat it.
// Counts go back to before the batch and forward again, as those of
// [Folder.Issued] do.
func (f *Tally) Results(ms []likes.Mutation, added []store.Added, asOf time.Time, out []likes.Result) {
	f.taken = slices.Grow(f.taken[:0], len(f.adds))[:len(f.adds)]
	clear(f.taken)
	for a := range f.adds {
		f.running[f.itemOf[a]] = added[a].Count
	}
	for a := range f.adds {
		if added[a].New {
			f.running[f.itemOf[a]]--
		}
	}
	for i := range ms {
		a := f.addOf[i]
		item, version := f.itemOf[a], added[a].Version
		out[i] = likes.Result{Outcome: likes.Unchanged, Version: likes.Version{Edge: ms[i].Edge, Epoch: version.Epoch}}
		if added[a].New && !f.taken[a] {
			f.taken[a] = true
			f.running[item]++
			out[i].Outcome = likes.Changed
		}
		if ms[i].Fixed == 0 {
			out[i].Count = likes.Count{N: f.running[item], Version: version, AsOf: asOf, Source: likes.FromStore}
		}
	}
}
