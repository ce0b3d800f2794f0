package clock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/clock"
	"likectl/pkg/likes"
)

func TestNowNeverRepeatsOrFallsOverGoroutines(t *testing.T) {
	c := clock.New(7)
	const workers, each = 8, 5000
	seen := make([][]likes.Clock, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for range each {
				seen[w] = append(seen[w], c.Now())
			}
		})
	}
	wg.Wait()
	all := make(map[likes.Clock]bool)
	for _, s := range seen {
		for i, k := range s {
			require.False(t, all[k], "clock issued twice")
			require.Equal(t, uint16(7), k.Instance())
			require.True(t, i == 0 || k > s[i-1], "clock fell")
			all[k] = true
		}
	}
}

func TestEstimateIsWithinItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.New(1)
		_, known := c.Bound()
		require.False(t, known)

		skew := 3 * time.Second
		delays := []time.Duration{9 * time.Millisecond, 1 * time.Millisecond, 5 * time.Millisecond, 7 * time.Millisecond}
		reads := 0
		// All of the delay lies before the reading: the worst case for the middle.
		err := c.Measure(t.Context(), func(context.Context) (time.Time, error) {
			time.Sleep(delays[reads])
			reads++
			return time.Now().Add(skew), nil
		})
		require.NoError(t, err)
		bound, known := c.Bound()
		require.True(t, known)
		require.Less(t, bound, time.Millisecond, "the shortest round trip was not kept")
		off := c.Time().Sub(time.Now().Add(skew))
		require.LessOrEqual(t, off.Abs(), bound)

		time.Sleep(time.Hour)
		later, _ := c.Bound()
		require.InDelta(t, bound+720*time.Millisecond, later, float64(10*time.Microsecond), "200 ppm of an hour")
	})
}

func TestNowDoesNotFallWhenTheReferenceSteps(t *testing.T) {
	c := clock.New(1)
	at := func(d time.Duration) clock.Reference {
		return func(context.Context) (time.Time, error) { return time.Now().Add(d), nil }
	}
	require.NoError(t, c.Measure(t.Context(), at(time.Hour)))
	before := c.Now()
	for range 100 { // until a reading is at least as sharp as the first one
		require.NoError(t, c.Measure(t.Context(), at(0)))
		if c.Offset() < time.Minute {
			break
		}
	}
	require.Less(t, c.Offset(), time.Minute)
	require.Equal(t, before.Next(), c.Now())
}

func TestFollowReportsAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.New(1)
		ctx, cancel := context.WithCancel(t.Context())
		away := errors.New("away")
		var back atomic.Bool
		var reported []error // read only while the follower is blocked
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.Follow(ctx, func(context.Context) (time.Time, error) {
				if !back.Load() {
					return time.Time{}, away
				}
				return time.Now(), nil
			}, time.Second, func(err error) { reported = append(reported, err) })
		}()
		synctest.Wait()
		require.Len(t, reported, 1)
		require.ErrorIs(t, reported[0], away)
		back.Store(true)
		time.Sleep(time.Second)
		synctest.Wait()
		_, known := c.Bound()
		require.True(t, known)
		cancel()
		<-done
	})
}
