// Package probe tells from what a process does, and from small questions where it
// does nothing, whether what it stands on works.
package probe

import (
	"context"
	"errors"
	"sync"
	"time"

	"likectl/pkg/likes"
)

const (
	// quiet is how long after a failed transaction nothing is probed: a small
	// write may go through where a batch does not, as on a disk that is nearly
	// full, and as long as batches fail they are what counts.
	quiet = 2 * time.Second
	// trusted is how long a transaction that went through speaks for the next. An
	// idle process that is asked probes once in this time.
	trusted = 10 * time.Second
)

// Writes knows whether a store takes writes, which one that answers reads may not:
// from the outcome of the transactions there are, and by a small write of its own
// where there are none. It is safe for concurrent use.
type Writes struct {
	write func(context.Context) error // the small one

	mu     sync.Mutex
	good   time.Time // the last that went through
	failed time.Time // the last that did not; zero if one went through since
	err    error     // why
}

// NewWrites returns the knowledge of a process that has written nothing yet. probe
// writes something small, durably.
func NewWrites(probe func(context.Context) error) *Writes { return &Writes{write: probe} }

// Done notes the outcome of a transaction. Only errors that speak of the store
// count: not those of a batch that was refused or wrong.
func (w *Writes) Done(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		w.good, w.failed, w.err = time.Now(), time.Time{}, nil
	case errors.Is(err, likes.ErrUnavailable), errors.Is(err, likes.ErrUncertain):
		w.failed, w.err = time.Now(), err
	}
}

// Check returns nil if the store takes writes, else why the last one failed.
func (w *Writes) Check(ctx context.Context) error {
	w.mu.Lock()
	now, good, failed, err := time.Now(), w.good, w.failed, w.err
	w.mu.Unlock()
	switch {
	case err != nil && now.Sub(failed) < quiet:
		return err
	case err == nil && !good.IsZero() && now.Sub(good) < trusted:
		return nil
	}
	if err := w.write(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed.Equal(failed) { // none failed meanwhile
		w.good, w.failed, w.err = time.Now(), time.Time{}, nil
	}
	return w.err
}
