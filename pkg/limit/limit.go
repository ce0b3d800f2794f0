// Package limit bounds how often a key, such as a user or an address, may do
// something: so many calls in a window, by the generic cell rate algorithm of
// ATM (ITU-T I.371) in github.com/throttled/throttled.
//
// A key has its whole limit at once when it begins and gets it back evenly: with
// 100 in a minute one more every 0.6 s. Two things follow that a counter per
// calendar minute cannot give: nobody has twice the limit around a full minute,
// and the time to wait is known exactly and is short. In any window that begins
// with nothing used, no more than the limit and what came back meanwhile pass.
//
// A limiter lives in its process and forgets with it. It starts no goroutine, and
// its memory is bounded by the number of keys: see [New].
package limit

import (
	"context"
	"sync"
	"time"

	"github.com/throttled/throttled/v2"

	"likectl/pkg/likes"
)

// Limit is Max calls in a Window.
type Limit struct {
	Max    int
	Window time.Duration
}

// The bounds of a limit: whole seconds, since headers tell windows in seconds; at
// most 1e9 calls, so that one of a second still has a nanosecond each.
const (
	MaxWindow = 366 * 24 * time.Hour
	MaxCalls  = 1_000_000_000
	// MaxWindows is how many limits hold at once for a key.
	MaxWindows = 4
)

// Check returns ErrInvalid unless there are 1 to MaxWindows limits, all in range
// and no two with the same window. A limit of 0 is never "unlimited".
func Check(limits []Limit) error {
	if len(limits) < 1 || len(limits) > MaxWindows {
		return likes.Errorf(likes.ErrInvalid, "%d limits, want 1 to %d", len(limits), MaxWindows)
	}
	for i, l := range limits {
		if l.Max < 1 || l.Max > MaxCalls {
			return likes.Errorf(likes.ErrInvalid, "limit %d, want 1 to %d", l.Max, MaxCalls)
		}
		if l.Window < time.Second || l.Window > MaxWindow || l.Window%time.Second != 0 {
			return likes.Errorf(likes.ErrInvalid, "window %v, want whole seconds, 1s to %v", l.Window, MaxWindow)
		}
		for _, other := range limits[:i] {
			if other.Window == l.Window {
				return likes.Errorf(likes.ErrInvalid, "window %v: twice", l.Window)
			}
		}
	}
	return nil
}

// interval is the time in which one call comes back.
func (l Limit) interval() time.Duration { return l.Window / time.Duration(l.Max) }

// Limiter holds the limits of one bucket and what its keys have used of them. It
// is safe for concurrent use.
type Limiter struct {
	name    string
	maxKeys int

	mu      sync.Mutex // one bucket's calls take well under a microsecond each
	windows []*window
	policy  string
}

// window is one limit with its state.
type window struct {
	Limit
	name  string // in headers
	store *store
	gcra  *throttled.GCRARateLimiterCtx
}

// New returns a limiter of the named bucket, or ErrInvalid. It remembers maxKeys
// keys for each limit, about 150 bytes each, and forgets the one that has been
// idle for longest: a key that is forgotten has its whole limit again, which
// matters only where more than maxKeys keys call within a window.
func New(name string, maxKeys int, limits ...Limit) (*Limiter, error) {
	if maxKeys < 1 {
		return nil, likes.Errorf(likes.ErrInvalid, "%s: max keys %d, want at least 1", name, maxKeys)
	}
	l := &Limiter{name: name, maxKeys: maxKeys}
	if err := l.SetLimits(limits...); err != nil {
		return nil, err
	}
	return l, nil
}

// Name returns the name of the bucket.
func (l *Limiter) Name() string { return l.name }

// SetLimits replaces the limits, or returns ErrInvalid and leaves them. The new
// ones hold at once, and what a key has used stays used, call by call: with 5 of
// 10 used, a limit of 3 is used up. A window that is new starts with what the
// next longer one, or else the longest, has counted.
func (l *Limiter) SetLimits(limits ...Limit) error {
	if err := Check(limits); err != nil {
		return likes.Errorf(likes.ErrInvalid, "%s: %w", l.name, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	windows := make([]*window, 0, len(limits))
	for _, limit := range limits {
		w := &window{Limit: limit, name: policyName(l.name, limit), store: newStore(l.maxKeys)}
		if old := l.nearest(limit.Window); old != nil {
			w.store.carry(old.store, old.Limit, limit)
		}
		var err error
		w.gcra, err = throttled.NewGCRARateLimiterCtx(w.store, throttled.RateQuota{
			MaxRate: throttled.PerDuration(limit.Max, limit.Window), MaxBurst: limit.Max - 1,
		})
		if err != nil {
			return likes.Errorf(likes.ErrInvalid, "%s: %w", l.name, err)
		}
		windows = append(windows, w)
	}
	l.windows, l.policy = windows, policyOf(windows)
	return nil
}

// nearest returns the present window of that length, else the next longer one,
// else the longest, and nil if there is none yet.
func (l *Limiter) nearest(length time.Duration) *window {
	var longer, longest *window
	for _, w := range l.windows {
		if w.Window >= length && (longer == nil || w.Window < longer.Window) {
			longer = w
		}
		if longest == nil || w.Window > longest.Window {
			longest = w
		}
	}
	if longer != nil {
		return longer
	}
	return longest
}

// Decision says whether a call may go on and how its key stands.
type Decision struct {
	Allowed bool
	// RetryAfter is the time until the next call is allowed, if this one is not.
	RetryAfter time.Duration

	policy  string
	windows [MaxWindows]standing
	n       int
}

// standing is how a key stands with one limit.
type standing struct {
	name      string
	remaining int
	reset     time.Duration // until all is back; if refused, until one is
}

// Take takes one call of the key from every limit, or from none if one of them
// has none left: waiting for the minute costs nothing of the day.
func (l *Limiter) Take(ctx context.Context, key string) (Decision, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.windows) > 1 {
		if d, err := l.decide(ctx, key, 0); err != nil || !d.Allowed {
			return d, err
		}
	}
	return l.decide(ctx, key, 1)
}

// Look returns what Take would decide, and takes nothing. Who needs one call of
// several limiters or none looks at all of them before it takes.
func (l *Limiter) Look(ctx context.Context, key string) (Decision, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.decide(ctx, key, 0)
}

// decide takes a quantity of 1 from every limit, or decides about it with 0,
// which looks only. The caller holds mu.
func (l *Limiter) decide(ctx context.Context, key string, quantity int) (Decision, error) {
	d := Decision{Allowed: true, policy: l.policy, n: len(l.windows)}
	for i, w := range l.windows {
		_, r, err := w.gcra.RateLimitCtx(ctx, key, quantity)
		if err != nil {
			return Decision{}, err
		}
		d.windows[i] = standing{name: w.name, remaining: r.Remaining, reset: r.ResetAfter}
		if r.RetryAfter > 0 {
			d.Allowed, d.RetryAfter = false, max(d.RetryAfter, r.RetryAfter)
			d.windows[i].reset = r.RetryAfter
		}
	}
	return d, nil
}
