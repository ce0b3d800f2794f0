// Package reconcile walks over counters, compares each with the edges that it is
// derived from, and repairs those that differ.
//
// It is safe while likes come in. [store.Auditor] says why: both sides of a
// comparison are read in one snapshot, where writers in flight cannot show, and
// a repair adds the difference instead of setting a value, so what others add
// meanwhile stays. The walk therefore takes no locks and stops nobody; it only
// competes for the store's time, which the pace bounds.
//
// # In which order
//
// By key, one pass. A list of counters to look at first (those written since they
// were last compared) pays where an edge and its counter are two writes, so that
// what breaks in between leaves exactly such a counter. At tier 1 both change in
// one transaction: a counter that was written a moment ago is no more likely to be
// wrong than one nobody has touched for a year, because what makes it wrong comes
// from outside and touches either. Keeping the list would cost every like a write
// and find nothing earlier. Tiers whose counters follow later bring their list with
// them, as keys (Config.Keys).
package reconcile

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"likectl/pkg/likes"
	"likectl/pkg/pace"
	"likectl/pkg/retry"
	"likectl/pkg/store"
)

// The bounds of a walk.
const (
	// DefaultPerSecond leaves most of a small database's time to its users; a
	// million counters take 50 s.
	DefaultPerSecond = 20_000
	// MaxPerSecond is more than any store can do: the walk is not paced.
	MaxPerSecond = 10_000_000
	// MaxKeys is the number of counters that can be named one by one.
	MaxKeys = 1000

	// chunk is the number of counters compared in one snapshot, which a store
	// must keep old versions of rows for.
	chunk = 500
	// repairs is how often a counter is repaired until it is found right. More
	// than one is needed only if something breaks it again at the same time.
	repairs = 3
)

// Config says what to walk over and what to do.
type Config struct {
	// Keys are the counters to check; none: all of them.
	Keys []store.Key
	// DryRun: differences are listed, not repaired.
	DryRun bool
	// PerSecond bounds how many counters are compared in a second, 1 to
	// MaxPerSecond.
	PerSecond int
	// RightAt is an instant at which all counters are known to have been right or
	// later became so, as a complete walk before shows; zero: none is known.
	RightAt time.Time
}

// Validate returns ErrInvalid that names what is out of range.
func (c Config) Validate() error {
	if c.PerSecond < 1 || c.PerSecond > MaxPerSecond {
		return likes.Errorf(likes.ErrInvalid, "%d counters per second, want 1 to %d", c.PerSecond, MaxPerSecond)
	}
	if len(c.Keys) > MaxKeys {
		return likes.Errorf(likes.ErrInvalid, "%d counters, want at most %d", len(c.Keys), MaxKeys)
	}
	for _, k := range c.Keys {
		e := likes.Edge{Counter: k.Counter, Item: k.Item, User: 1}
		if err := e.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// Found is a counter that differed from its edges.
type Found struct {
	// Drift is what the walk found.
	store.Drift
	// Repaired: a comparison after the repair found no difference any more.
	Repaired bool
	// RightAt is that of the walk's Config: the drift is not older.
	RightAt time.Time
}

// Difference is what the counter lacked to its edges.
func (f Found) Difference() int64 { return f.Edges - f.Stored }

// Summary is what a walk found and did.
type Summary struct {
	// Checked is the number of counters compared, Drifted those that differed,
	// Repaired those that are right now.
	Checked, Drifted, Repaired int64
	// Magnitude is the sum of the differences, each without its sign.
	Magnitude int64
}

// Walk is one pass. It runs once.
type Walk struct {
	auditor  store.Auditor
	config   Config
	found    func(Found) error
	sum      Summary
	checked  atomic.Int64
	estimate atomic.Int64
}

// New returns a walk that is ready to run, or ErrInvalid. found is called for
// every difference, after its repair; its error ends the walk.
func New(a store.Auditor, c Config, found func(Found) error) (*Walk, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Walk{auditor: a, config: c, found: found}, nil
}

// Progress returns how many counters have been compared and about how many there
// are, 0 if unknown. It may be called while the walk runs.
func (w *Walk) Progress() (checked, estimate int64) { return w.checked.Load(), w.estimate.Load() }

// Run walks to the end, or until an error or the context's end, and returns what
// it did so far in any case. Repairs that were made stay made.
func (w *Walk) Run(ctx context.Context) (Summary, error) {
	pacer := pace.New(w.config.PerSecond)
	step := w.steps(ctx)
	for {
		audit, err := step()
		if err != nil {
			return w.sum, fmt.Errorf("compare counters: %w", err)
		}
		w.sum.Checked += int64(audit.Checked)
		w.checked.Store(w.sum.Checked)
		for _, d := range audit.Drifts {
			if err := w.handle(ctx, d); err != nil {
				return w.sum, err
			}
		}
		if audit.Next == (store.Key{}) {
			return w.sum, nil
		}
		if err := pacer.Wait(ctx, audit.Checked); err != nil {
			return w.sum, err
		}
	}
}

// steps returns the function that compares the next counters.
func (w *Walk) steps(ctx context.Context) func() (store.Audit, error) {
	if keys := w.config.Keys; len(keys) > 0 {
		w.estimate.Store(int64(len(keys)))
		return func() (audit store.Audit, err error) {
			err = retry.Do(ctx, func() error { audit, err = w.auditor.AuditItem(ctx, keys); return err })
			audit.Next = store.Key{}
			return audit, err
		}
	}
	// Without an estimate there is no time left to show, which is no failure.
	if n, err := w.auditor.Estimate(ctx); err == nil {
		w.estimate.Store(n)
	}
	var at store.Key
	size := chunk
	return func() (audit store.Audit, err error) {
		err = retry.Do(ctx, func() error {
			if audit, err = w.auditor.Audit(ctx, at, size); err != nil {
				// The items may have more edges than the store counts in time.
				size = max(1, size/4)
			}
			return err
		})
		size = min(chunk, 2*size)
		at = audit.Next
		return audit, err
	}
}

// handle repairs a drift, if the walk is to, and reports it.
func (w *Walk) handle(ctx context.Context, d store.Drift) error {
	f := Found{Drift: d, RightAt: w.config.RightAt}
	for n := 0; n < repairs && !w.config.DryRun && !f.Repaired; n++ {
		var after store.Audit
		// Repeating is safe for repairs too: each measures the difference again.
		err := retry.Do(ctx, func() error {
			if _, err := w.auditor.Repair(ctx, d.Key); err != nil {
				return err
			}
			var err error
			after, err = w.auditor.AuditItem(ctx, []store.Key{d.Key})
			return err
		})
		if err != nil {
			return fmt.Errorf("repair the %v of item %d:%d (stored %d, edges %d): %w",
				d.Counter, d.Item.Type, d.Item.ID, d.Stored, d.Edges, err)
		}
		f.Repaired = len(after.Drifts) == 0
	}
	w.sum.Drifted++
	w.sum.Magnitude += max(f.Difference(), -f.Difference())
	if f.Repaired {
		w.sum.Repaired++
	}
	return w.found(f)
}
