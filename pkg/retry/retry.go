// Package retry repeats the steps of long walks while a store is away for a
// moment, so that a failover of some seconds does not end them.
package retry

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"likectl/pkg/likes"
)

const (
	// attempts is how often a step is tried, with pauses that double: about 6 s
	// in all.
	attempts = 6
	minPause = 200 * time.Millisecond
)

// Do runs a step that may be repeated, until it succeeds, fails for good, or has
// failed six times, and returns its last error. The context's end ends a pause.
func Do(ctx context.Context, step func() error) error {
	pause := minPause
	for n := 1; ; n++ {
		err := step()
		if err == nil || n == attempts || !Temporary(err) {
			return err
		}
		if err := Sleep(ctx, pause/2+rand.N(pause/2)); err != nil {
			return err
		}
		pause *= 2
	}
}

// Temporary says whether a store that gave this error may give another answer
// soon.
func Temporary(err error) bool {
	return errors.Is(err, likes.ErrUnavailable) || errors.Is(err, likes.ErrOverloaded) || errors.Is(err, likes.ErrUncertain)
}

// Sleep returns after d or, with the context's error, when the context ends.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
