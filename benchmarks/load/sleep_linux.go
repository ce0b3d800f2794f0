package load

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// sleeper wakes at instants of the monotonic clock. Timers of the runtime are late
// by up to a millisecond on an idle process, since epoll counts in milliseconds; the
// kernel's own sleep, with the thread's timer slack at its least, by some 10 to 60
// microseconds. Its user has locked the goroutine to its thread.
type sleeper struct{ offset time.Duration }

// newSleeper returns a sleeper for instants counted from start.
func newSleeper(start time.Time) (sleeper, error) {
	// The slack is the thread's own; 1 ns is the least (prctl(2)).
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return sleeper{}, err
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return sleeper{}, err
	}
	return sleeper{time.Duration(now.Nano()) - time.Since(start)}, nil
}

// until sleeps until an instant; a past one returns at once.
func (s sleeper) until(at time.Duration) error {
	t := unix.NsecToTimespec(int64(s.offset + at))
	for {
		err := unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &t, nil)
		if !errors.Is(err, unix.EINTR) { // the runtime's preemption signals
			return err
		}
	}
}
