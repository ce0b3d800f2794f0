package reconcile

import (
	"slices"

	"likectl/pkg/reconcile"
)

// largestShown is how many of the largest differences are listed once more.
const largestShown = 10

// largest keeps the largest differences of a walk, which finds them in the order
// of keys: of thousands, these are to be looked at first.
type largest []reconcile.Found

func size(f reconcile.Found) int64 { return max(f.Difference(), -f.Difference()) }

// add keeps a difference if it is one of the largest, of equal ones the first.
func (l *largest) add(f reconcile.Found) {
	at := len(*l)
	for at > 0 && size((*l)[at-1]) < size(f) {
		at--
	}
	if at < largestShown {
		*l = slices.Insert(*l, at, f)
		*l = (*l)[:min(len(*l), largestShown)]
	}
}
