package limit

import (
	"strconv"
	"time"
)

// Seconds returns a time in whole seconds, rounded up: who waits for so long has
// waited long enough.
func Seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// policyName names a limit in headers: "like-60" is the one of likes in 60 s.
func policyName(bucket string, l Limit) string {
	return bucket + "-" + strconv.Itoa(Seconds(l.Window))
}

// policyOf returns the items of RateLimit-Policy: "like-60";q=100;w=60.
func policyOf(windows []*window) string {
	var b []byte
	for i, w := range windows {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(append(append(b, '"'), w.name...), `";q=`...)
		b = strconv.AppendInt(b, int64(w.Max), 10)
		b = strconv.AppendInt(append(b, ";w="...), int64(Seconds(w.Window)), 10)
	}
	return string(b)
}

// Policy returns the items of the header RateLimit-Policy
// (draft-ietf-httpapi-ratelimit-headers): a quota q in a window of w seconds.
func (d *Decision) Policy() string { return d.policy }

// AppendStatus appends the items of the header RateLimit: r calls are left, and t
// is the time in seconds until all are back, or, after a refusal, until one is.
func (d *Decision) AppendStatus(b []byte) []byte {
	for i, w := range d.windows[:d.n] {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(append(append(b, '"'), w.name...), `";r=`...)
		b = strconv.AppendInt(b, int64(w.remaining), 10)
		b = strconv.AppendInt(append(b, ";t="...), int64(Seconds(w.reset)), 10)
	}
	return b
}
