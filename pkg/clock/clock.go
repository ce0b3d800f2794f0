// Package clock gives operations their clocks: the reference time of the
// cluster (its database's or Redis's clock), estimated on top of the machine's
// monotonic clock, with a bound on the estimate's error.
//
// The wall clock is read once. Everything after that is the monotonic clock plus
// a measured offset, so that stepping the machine's time changes nothing here.
package clock

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"likectl/pkg/likes"
)

// driftPPM bounds how fast the machine's oscillator runs away from the
// reference. RFC 5905 assumes 15 ppm for a disciplined clock; virtual machines
// without one are seen at up to some 100.
const driftPPM = 200

// Reference reads the cluster's reference clock once.
type Reference func(ctx context.Context) (time.Time, error)

// Clock issues the clocks of one instance. It is safe for concurrent use.
type Clock struct {
	instance uint16
	started  time.Time // has the monotonic reading
	last     atomic.Int64
	sample   atomic.Pointer[sample]
}

// sample is one measurement of the reference.
type sample struct {
	at     time.Duration // since started
	offset time.Duration // reference minus started+at
	err    time.Duration // half of the round trip
}

// New returns a clock of an instance id (0 to [likes.MaxInstance]) that follows
// the machine's own clock until it has measured a reference.
func New(instance uint16) *Clock {
	return &Clock{instance: instance & likes.MaxInstance, started: time.Now()}
}

// Instance returns the id that the clocks carry.
func (c *Clock) Instance() uint16 { return c.instance }

// Now returns the next clock of this instance: the estimate of the reference
// time, raised where needed so that every call returns a greater one.
func (c *Clock) Now() likes.Clock {
	now := likes.ClockAt(c.Time(), c.instance)
	for {
		last := likes.Clock(c.last.Load())
		if now <= last {
			now = last.Next()
		}
		if c.last.CompareAndSwap(int64(last), int64(now)) {
			return now
		}
	}
}

// Time returns the estimate of the reference time.
func (c *Clock) Time() time.Time {
	t := c.started.Add(time.Since(c.started))
	if s := c.sample.Load(); s != nil {
		t = t.Add(s.offset)
	}
	return t
}

// Bound returns the greatest error of the estimate now: half of the measuring
// round trip, plus what the oscillator may have drifted since. It reports false
// before the first measurement, when the error is unknown.
func (c *Clock) Bound() (time.Duration, bool) {
	s := c.sample.Load()
	if s == nil {
		return 0, false
	}
	return s.bound(time.Since(c.started)), true
}

func (s *sample) bound(now time.Duration) time.Duration {
	return s.err + (now-s.at)*driftPPM/1e6
}

// Offset returns the reference time minus the machine's clock, 0 if unmeasured.
func (c *Clock) Offset() time.Duration {
	if s := c.sample.Load(); s != nil {
		return s.offset
	}
	return 0
}

// Measure reads the reference a few times and keeps the reading with the
// smallest bound, the earlier one included (Cristian, "Probabilistic clock
// synchronization", 1989: the true time lies within half of the round trip
// around its middle).
func (c *Clock) Measure(ctx context.Context, read Reference) error {
	const readings = 4
	best := c.sample.Load()
	for range readings {
		sent := time.Since(c.started)
		ref, err := read(ctx)
		if err != nil {
			return fmt.Errorf("read the reference clock: %w", err)
		}
		received := time.Since(c.started)
		middle := sent + (received-sent)/2
		s := &sample{at: middle, offset: ref.Sub(c.started.Add(middle)), err: (received - sent + 1) / 2}
		if best == nil || s.bound(received) <= best.bound(received) {
			best = s
		}
	}
	c.sample.Store(best)
	return nil
}

// Follow measures at once and then again and again until the context ends.
// A failed measurement is given to report and leaves the last one in force,
// with a bound that grows.
func (c *Clock) Follow(ctx context.Context, read Reference, every time.Duration, report func(error)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := c.Measure(ctx, read); err != nil && ctx.Err() == nil {
			report(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
