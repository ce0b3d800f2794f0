package tiertest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sort"
	"time"

	"likectl/pkg/likes"
)

// CheckCounts returns an error unless every count that was read, or came with an
// issued operation, is a value the truth may have had at some instant from the
// staleness before the call to the return. It works on histories of any size:
// n log n, no search.
//
// The truth is not known, but bounded. An edge may be in the state that an
// operation asked for from the operation's call until another, certain one that
// began after its return has returned; uncertain operations never end another's
// reign. So at any instant an edge is surely liked, surely not, or either, and the
// item's count is between the number of the first and that of all but the second.
//
// That a fitting instant exists follows from the extremes alone: both bounds move
// by one edge at a time, so between an instant where the count is too high for
// the bounds and one where it is too low there is one where it fits.
func CheckCounts(events []Event, staleness time.Duration) error {
	type target struct {
		counter likes.Counter
		item    likes.Item
	}
	writes, reads := map[target]map[likes.Edge][]Event{}, map[target][]Event{}
	for _, e := range events {
		t := target{e.Edge.Counter, e.Edge.Item}
		switch {
		case e.Kind == KindCount:
			reads[t] = append(reads[t], e)
		case e.write():
			if writes[t] == nil {
				writes[t] = map[likes.Edge][]Event{}
			}
			writes[t][e.Edge] = append(writes[t][e.Edge], e)
		}
	}
	var errs []error
	for t, rs := range reads {
		b := newBounds(writes[t])
		for _, r := range rs {
			lo, hi := b.within(r.Call-int64(staleness), r.Return)
			if r.N < 0 || r.N < lo || r.N > hi {
				errs = append(errs, fmt.Errorf("%v item %d:%d: client %d read %d from %v to %v, when only %d to %d can have been true",
					t.counter, t.item.Type, t.item.ID, r.Client, r.N, time.Duration(r.Call), time.Duration(r.Return), max(lo, 0), hi))
			}
		}
	}
	return joinSome(errs)
}

// joinSome keeps a report readable.
func joinSome(errs []error) error {
	const shown = 10
	if len(errs) > shown {
		errs = append(errs[:shown:shown], fmt.Errorf("and %d more", len(errs)-shown))
	}
	return errors.Join(errs...)
}

// bounds are the least and the greatest possible count over time, as steps.
type bounds struct {
	at         []int64 // instants at which a step happens, ascending
	lows, tops extremes
}

type step struct {
	at       int64
	low, top int64
}

func newBounds(writes map[likes.Edge][]Event) bounds {
	steps := []step{{at: math.MinInt64}} // nobody likes it
	for _, es := range writes {
		steps = append(steps, stepsOf(es)...)
	}
	// At one instant bounds first widen, then narrow: calls are closed intervals.
	slices.SortStableFunc(steps, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.low-a.top, b.low-b.top))
	})
	b := bounds{at: make([]int64, len(steps))}
	low, top := make([]int64, len(steps)), make([]int64, len(steps))
	var l, t int64
	for i, s := range steps {
		l, t = l+s.low, t+s.top
		b.at[i], low[i], top[i] = s.at, -l, t
	}
	b.lows, b.tops = newExtremes(low), newExtremes(top)
	return b
}

// within returns the least lower and the greatest upper bound from one instant
// to another.
func (b bounds) within(from, to int64) (low, top int64) {
	past := func(t int64) int { return sort.Search(len(b.at), func(i int) bool { return b.at[i] > t }) }
	i, j := past(from)-1, past(to) // from the step that is in force at the beginning
	return -b.lows.max(i, j), b.tops.max(i, j)
}

// stepsOf returns how one edge moves the bounds of its item.
func stepsOf(es []Event) []step {
	liked, not := span{}, span{}
	certain := slices.DeleteFunc(slices.Clone(es), func(e Event) bool { return e.Uncertain })
	slices.SortFunc(certain, func(a, b Event) int { return cmp.Compare(a.Call, b.Call) })
	earliest := make([]int64, len(certain)+1) // the first return among certain[i:]
	earliest[len(certain)] = open
	for i := len(certain) - 1; i >= 0; i-- {
		earliest[i] = min(certain[i].Return, earliest[i+1])
	}
	// until is when an operation that returned then has surely been overruled.
	until := func(returned int64) int64 {
		return earliest[sort.Search(len(certain), func(i int) bool { return certain[i].Call > returned })]
	}
	not.add(math.MinInt64, until(math.MinInt64))
	for _, e := range es {
		if e.Kind == KindLike {
			liked.add(e.Call, until(e.Return))
		} else {
			not.add(e.Call, until(e.Return))
		}
	}
	var steps []step
	for _, p := range liked.union() { // liked is possible: the upper bound is one more
		steps = append(steps, step{at: p.from, top: 1})
		if p.to != open {
			steps = append(steps, step{at: after(p.to), top: -1})
		}
	}
	for _, p := range not.union() { // not liked is possible: the lower bound is one less
		if p.from != math.MinInt64 {
			steps = append(steps, step{at: p.from, low: -1})
		}
		if p.to != open {
			steps = append(steps, step{at: after(p.to), low: 1})
		}
	}
	return steps
}

// after is the first instant past a closed interval.
func after(t int64) int64 { return t + 1 }

// span is a set of closed intervals.
type span struct{ parts []part }

type part struct{ from, to int64 }

func (s *span) add(from, to int64) { s.parts = append(s.parts, part{from, to}) }

// union returns the set as intervals that do not touch.
func (s *span) union() []part {
	slices.SortFunc(s.parts, func(a, b part) int { return cmp.Compare(a.from, b.from) })
	var out []part
	for _, p := range s.parts {
		if n := len(out); n > 0 && (out[n-1].to == open || p.from <= after(out[n-1].to)) {
			out[n-1].to = max(out[n-1].to, p.to)
			continue
		}
		out = append(out, p)
	}
	return out
}

// extremes answers the maximum of any range from tables of powers of two.
type extremes [][]int64

func newExtremes(v []int64) extremes {
	x := extremes{v}
	for w := 1; 2*w <= len(v); w *= 2 {
		last := x[len(x)-1]
		next := make([]int64, len(v)-2*w+1)
		for i := range next {
			next[i] = max(last[i], last[i+w])
		}
		x = append(x, next)
	}
	return x
}

// max returns the maximum of v[i:j], i < j.
func (x extremes) max(i, j int) int64 {
	k := bits.Len(uint(j-i)) - 1
	return max(x[k][i], x[k][j-1<<k])
}
