package limit

import (
	"context"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/throttled/throttled/v2"
)

// store keeps for every key of a window the theoretical arrival time of the
// algorithm: the moment at which all that was used is back. The library's own
// store cannot be carried over to another limit and keeps keys in boxes.
//
// The limiter's mutex is held around every call.
type store struct {
	keys  *simplelru.LRU[string, int64] // Unix nanoseconds
	start time.Time
}

var _ throttled.GCRAStoreCtx = (*store)(nil)

func newStore(maxKeys int) *store {
	keys, err := simplelru.NewLRU[string, int64](maxKeys, nil)
	if err != nil {
		panic(err) // New has checked the only thing that can be wrong
	}
	return &store{keys: keys, start: time.Now()}
}

// now is the time by the monotonic clock: setting the machine's clock back by an
// hour must not lock users out for an hour.
func (s *store) now() time.Time { return s.start.Add(time.Since(s.start)) }

// GetWithTime returns the key's value, -1 without one, and the time.
func (s *store) GetWithTime(_ context.Context, key string) (int64, time.Time, error) {
	at, ok := s.keys.Get(key)
	if !ok {
		at = -1
	}
	return at, s.now(), nil
}

// SetIfNotExistsWithTTL adds a key. None expires by itself: one whose time is
// past counts as one that is not there, and makes room when room is needed.
func (s *store) SetIfNotExistsWithTTL(_ context.Context, key string, at int64, _ time.Duration) (bool, error) {
	if s.keys.Contains(key) {
		return false, nil
	}
	s.keys.Add(key, at)
	return true, nil
}

// CompareAndSwapWithTTL replaces a key's value if it is still the old one.
func (s *store) CompareAndSwapWithTTL(_ context.Context, key string, old, at int64, _ time.Duration) (bool, error) {
	if v, ok := s.keys.Peek(key); !ok || v != old {
		return false, nil
	}
	s.keys.Add(key, at)
	return true, nil
}

// carry takes over the keys of another store, with as many calls used as there,
// at most all that the new limit has.
func (s *store) carry(from *store, old, limit Limit) {
	was, now := from.now(), s.now()
	for _, key := range from.keys.Keys() { // the idlest first, so that the order stays
		at, _ := from.keys.Peek(key)
		left := time.Unix(0, at).Sub(was)
		if left <= 0 {
			continue
		}
		used := float64(left) / float64(old.interval())
		left = time.Duration(min(used*float64(limit.interval()), float64(limit.interval())*float64(limit.Max)))
		s.keys.Add(key, now.Add(left).UnixNano())
	}
}
