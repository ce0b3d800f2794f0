package httpapi

import (
	"sync/atomic"
	"time"
)

// sparse lets one log line a second through. While a store is away every request
// fails, and a line each would fill the disk before anybody reads them: 10,000
// requests a second are 3 MB of log a second.
type sparse struct {
	until   atomic.Int64 // Unix nanoseconds
	skipped atomic.Int64
}

// allow reports whether to write a line now, and how many were left out since
// the last one.
func (q *sparse) allow(now time.Time) (skipped int64, ok bool) {
	until := q.until.Load()
	if now.UnixNano() < until || !q.until.CompareAndSwap(until, now.Add(time.Second).UnixNano()) {
		q.skipped.Add(1)
		return 0, false
	}
	return q.skipped.Swap(0), true
}
