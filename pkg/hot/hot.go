// Package hot finds the counters that are written most often: which they are, and
// how many writes a second they take.
//
// # Problem
//
// An item that goes viral shows in no average, and a count per item would need
// memory without bound. It has to be found among millions of others, by
// something that every write can afford.
//
// # Algorithm
//
// Space-Saving (Metwally, Agrawal, El Abbadi: Efficient Computation of Frequent
// and Top-k Elements in Data Streams, 2005) in slices of time. A sketch of m
// counters over N writes holds every key with more than N/m of them, and
// overestimates none by more than N/m; what it overestimates at most is known for
// each key. A window is the sum of its slices, with the sums of their bounds.
// Chosen over Count-Min, which needs the keys to be kept beside it and bounds the
// error by probability only, and over sampling, which misses what has just begun.
// It is 60 lines here: a heap, a map, no dependency.
//
// # Cost
//
// Trackers are fed by batch: a lane, which is already one writer, has sketches of
// its own under a lock that nobody else holds but readers, for microseconds. A
// write costs about 50 ns of it, 100 where no two are of one item; those of one
// item in a batch cost as much as one. The memory is fixed: about 2 MB.
package hot

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

const (
	// Minute is the longest window.
	Minute = time.Minute
	// Sudden is a window that shows what has just become hot; also the time that
	// an item must be hot before it is treated as such.
	Sudden = 10 * time.Second

	// slice is the step in which windows move.
	slice = 5 * time.Second
	// kept are the slices of the longest window and the one that is being filled.
	kept = int(Minute/slice) + 1
	// capacity is how many keys all lanes together hold in a slice: the error is
	// a thousandth of all writes, 10 a second at 10,000.
	capacity = 1024
	// leastCapacity is that of a lane, however many lanes there are.
	leastCapacity = 64
)

// Rate is how often a counter is written.
type Rate struct {
	store.Key
	// PerSecond is the greatest possible rate: the true one is at most Error less.
	PerSecond, Error float64
}

// AtLeast is the least possible rate.
func (r Rate) AtLeast() float64 { return r.PerSecond - r.Error }

// Rates tells the counters that are written most often.
type Rates interface {
	// Top returns up to n counters by their rates in a window that ends now, the
	// greatest least possible rate first. A window is a multiple of 5 s up to a
	// Minute; it reaches up to 5 s further back than it says.
	Top(n int, window time.Duration) []Rate
}

// Tracker tracks the writes of one process. It is safe for concurrent use.
type Tracker struct {
	began time.Time
	lanes []lane
}

var _ Rates = (*Tracker)(nil)

// New returns a tracker for writers in a number of lanes, or ErrInvalid. All
// writes of a counter must come through one lane.
func New(lanes int) (*Tracker, error) {
	if lanes < 1 {
		return nil, likes.Errorf(likes.ErrInvalid, "%d lanes, want at least 1", lanes)
	}
	t := &Tracker{began: time.Now(), lanes: make([]lane, lanes)}
	for i := range t.lanes {
		for s := range t.lanes[i].slices {
			t.lanes[i].slices[s] = timeSlice{number: -1, sketch: newSketch(max(capacity/lanes, leastCapacity))}
		}
	}
	return t, nil
}

// lane has the slices of one writer.
type lane struct {
	mu     sync.Mutex
	slices [kept]timeSlice // slice n stands at n modulo kept
}

type timeSlice struct {
	number int64 // since the tracker began; -1: never used
	sketch sketch
}

// Wrote counts the writes of a lane's batch that were applied. Those of one
// counter stand side by side.
func (t *Tracker) Wrote(lane int, writes []store.Write, written []store.Written) {
	l := &t.lanes[lane]
	number := int64(time.Since(t.began) / slice)
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.slices[number%int64(kept)]
	if s.number != number {
		s.number = number
		s.sketch.reset()
	}
	for from := 0; from < len(writes); {
		key := keyOf(writes[from].Edge)
		var n int64
		for ; from < len(writes) && keyOf(writes[from].Edge) == key; from++ {
			if written[from].Applied {
				n++
			}
		}
		if n > 0 {
			s.sketch.add(key, n)
		}
	}
}

func keyOf(e likes.Edge) store.Key { return store.Key{Counter: e.Counter, Item: e.Item} }

// Top implements [Rates].
func (t *Tracker) Top(n int, window time.Duration) []Rate {
	since := time.Since(t.began)
	now := int64(since / slice)
	first := max(0, now-int64(min(window, Minute)/slice))
	// The first second is not extrapolated from less.
	seconds := max(since-time.Duration(first)*slice, time.Second).Seconds()
	var all []Rate
	for i := range t.lanes {
		for key, b := range t.lanes[i].bounds(first, now) {
			all = append(all, Rate{Key: key, PerSecond: float64(b.most) / seconds, Error: float64(b.most-b.least) / seconds})
		}
	}
	slices.SortFunc(all, func(a, b Rate) int {
		return cmp.Or(cmp.Compare(b.AtLeast(), a.AtLeast()), cmp.Compare(b.PerSecond, a.PerSecond), a.Compare(b.Key))
	})
	return slices.Clip(all[:min(n, len(all))])
}

// Above returns how many counters surely have more writes a second than a
// threshold, in a window. None is missed whose rate is above the threshold by
// more than the error, a thousandth of all writes.
func (t *Tracker) Above(threshold float64, window time.Duration) (n int) {
	for _, r := range t.Top(capacity, window) {
		if r.AtLeast() <= threshold {
			break
		}
		n++
	}
	return n
}

// bounds are between what a key's writes are.
type bounds struct{ least, most int64 }

// bounds returns the keys of the slices first to last. A slice that has no
// counter for a key may have missed as many of its writes as its least counter
// has.
func (l *lane) bounds(first, last int64) map[store.Key]bounds {
	all := make(map[store.Key]bounds)
	var missed int64
	var slots []slot
	for s := range l.slices {
		var least int64
		slots, least = l.copySlice(s, first, last, slots[:0])
		missed += least
		for i := range slots {
			b := all[slots[i].key]
			b.most += slots[i].count - least
			b.least += slots[i].count - slots[i].over
			all[slots[i].key] = b
		}
	}
	for key, b := range all {
		b.most += missed
		all[key] = b
	}
	return all
}

// copySlice copies a slice's counters, so that the writer waits for no more.
func (l *lane) copySlice(s int, first, last int64, to []slot) (slots []slot, least int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := &l.slices[s]; at.number >= first && at.number <= last {
		return append(to, at.sketch.slots...), at.sketch.least()
	}
	return to, 0
}
