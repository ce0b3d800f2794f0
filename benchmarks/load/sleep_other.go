//go:build !linux

package load

import "time"

// sleeper wakes at instants by the runtime's timers.
type sleeper struct{ start time.Time }

func newSleeper(start time.Time) (sleeper, error) { return sleeper{start}, nil }

func (s sleeper) until(at time.Duration) error {
	<-time.After(at - time.Since(s.start))
	return nil
}
