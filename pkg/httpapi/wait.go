package httpapi

import (
	"context"
	"errors"
	"time"

	"likectl/pkg/likes"
)

// The pauses between two questions for a version that is not readable yet: short
// at first, since most lags are a few milliseconds, and doubled up to a length at
// which a read that waits 200 ms has asked 11 times.
const (
	firstPause = time.Millisecond
	maxPause   = 32 * time.Millisecond
)

// waiter lets a read wait for the versions that its client has seen. All questions
// of one read share its time.
type waiter struct {
	atMost time.Duration
	until  time.Time // zero before the first wait
	timer  *time.Timer
	seen   []likes.Version
}

// waiter returns the waiter of a read that must include these versions.
func (c *call) waiter(seen []likes.Version) *waiter {
	return &waiter{atMost: c.api.cfg.Limits.MinVersionWait, seen: seen}
}

// stop ends the waiter's timer, if it has one.
func (w *waiter) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// pause waits for a while, less if the time is over before, and says whether to
// ask again.
func (w *waiter) pause(ctx context.Context, d time.Duration) bool {
	if w.until.IsZero() {
		w.until = time.Now().Add(w.atMost)
	}
	left := time.Until(w.until)
	if left <= 0 {
		return false
	}
	if d = min(d, left); w.timer == nil {
		w.timer = time.NewTimer(d)
	} else {
		w.timer.Reset(d)
	}
	select {
	case <-w.timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// reached asks for items, then again for those of them that carry ErrNotYet, until
// there are none or the waiter's time or the context ends; those then keep their
// error. Who has seen no version never waits. ask answers by position.
func reached[T any](ctx context.Context, w *waiter, items []likes.Item, ask func([]likes.Item) []T, errOf func(T) error) []T {
	answers := ask(items)
	if len(w.seen) == 0 {
		return answers
	}
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		var missing []int
		for i, a := range answers {
			if errors.Is(errOf(a), likes.ErrNotYet) {
				missing = append(missing, i)
			}
		}
		if len(missing) == 0 || !w.pause(ctx, pause) {
			return answers
		}
		again := make([]likes.Item, len(missing))
		for i, at := range missing {
			again[i] = items[at]
		}
		for i, a := range ask(again) {
			answers[missing[i]] = a
		}
	}
}
