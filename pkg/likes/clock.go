package likes

import (
	"strconv"
	"time"
)

// Clock orders the operations on one edge. 63 bits: microseconds since [Epoch0]
// in the upper 51, the id of the instance that issued the operation in the
// lower 12. 0 means "none". A greater clock is the later operation.
type Clock int64

const (
	instanceBits = 12
	// tick is one microsecond of a clock.
	tick Clock = 1 << instanceBits

	// MaxInstance is the greatest instance id a clock can carry.
	MaxInstance = 1<<instanceBits - 1

	// MaxClock is the greatest clock a replay may carry (the year 2091). It
	// leaves 2^40 microseconds above it, so that an issued operation can always
	// be later than a stored one without overflowing 63 bits.
	MaxClock Clock = (1<<51 - 1<<40) << instanceBits

	// maxAfter is the greatest clock that a version token may carry. Half of the
	// room above MaxClock is for the operations issued over a replayed one.
	maxAfter = MaxClock + 1<<39<<instanceBits
)

// clockEpoch is the microsecond that clocks count from.
var clockEpoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// ClockEpoch returns the instant that clocks count from: 2020-01-01 UTC.
func ClockEpoch() time.Time { return clockEpoch }

// ClockAt returns the clock of an instant, truncated to microseconds, on an
// instance. Instants before 2020 have no clock and give 0.
func ClockAt(t time.Time, instance uint16) Clock {
	us := t.UnixMicro() - clockEpoch.UnixMicro()
	if us < 0 {
		return 0
	}
	return Clock(us)<<instanceBits | Clock(instance&MaxInstance)
}

// Next returns the least clock of a later microsecond with the same instance.
func (c Clock) Next() Clock { return c + tick }

// Micros returns the microseconds since 2020-01-01 UTC.
func (c Clock) Micros() int64 { return int64(c >> instanceBits) }

// Instance returns the id of the instance that issued the operation.
func (c Clock) Instance() uint16 { return uint16(c & MaxInstance) }

// Time returns the instant, exact to the microsecond.
func (c Clock) Time() time.Time {
	return time.UnixMicro(clockEpoch.UnixMicro() + c.Micros()).UTC()
}

// String returns the clock as instant and instance.
func (c Clock) String() string {
	return c.Time().Format("2006-01-02T15:04:05.000000Z") + "@" + strconv.Itoa(int(c.Instance()))
}
