package limit_test

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"likectl/pkg/likes"
	"likectl/pkg/limit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newLimiter(t testing.TB, limits ...limit.Limit) *limit.Limiter {
	t.Helper()
	l, err := limit.New("like", 100, limits...)
	require.NoError(t, err)
	return l
}

func take(t testing.TB, l *limit.Limiter, key string) limit.Decision {
	t.Helper()
	d, err := l.Take(t.Context(), key)
	require.NoError(t, err)
	return d
}

// allowed takes calls until one is refused and returns how many were not.
func allowed(t testing.TB, l *limit.Limiter, key string) int {
	t.Helper()
	for n := 0; ; n++ {
		if !take(t, l, key).Allowed {
			return n
		}
	}
}

var perMinute = limit.Limit{Max: 100, Window: time.Minute}

func TestTheLimitHoldsAndComesBackEvenly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, perMinute)
		require.Equal(t, 100, allowed(t, l, "a"))
		require.Equal(t, 100, allowed(t, l, "b"), "each key has its own")
		time.Sleep(599 * time.Millisecond)
		require.Zero(t, allowed(t, l, "a"))
		time.Sleep(time.Millisecond)
		require.Equal(t, 1, allowed(t, l, "a"))
		time.Sleep(time.Minute)
		require.Equal(t, 100, allowed(t, l, "a"), "no more than the limit is ever saved up")
		time.Sleep(time.Hour)
		require.Equal(t, 100, allowed(t, l, "a"))
	})
}

func TestRetryAfterIsTrue(t *testing.T) {
	for _, one := range []limit.Limit{perMinute, {Max: 1, Window: time.Minute}, {Max: 7, Window: time.Hour}, {Max: 3, Window: time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiter(t, one)
			allowed(t, l, "a")
			d := take(t, l, "a")
			told := time.Duration(limit.Seconds(d.RetryAfter)) * time.Second
			require.InDelta(t, d.RetryAfter.Seconds(), told.Seconds(), 1)
			require.GreaterOrEqual(t, told, d.RetryAfter)
			for range 10 { // refusals do not push it back
				take(t, l, "a")
			}
			time.Sleep(d.RetryAfter - 1)
			require.False(t, take(t, l, "a").Allowed, "%v: it was allowed before", one)
			time.Sleep(time.Nanosecond)
			require.True(t, take(t, l, "a").Allowed, "%v: it is not allowed after %v", one, d.RetryAfter)
		})
	}
}

func TestACallThatOneLimitRefusesCostsNothingOfTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, limit.Limit{Max: 30, Window: time.Minute}, limit.Limit{Max: 70, Window: 24 * time.Hour})
		require.Equal(t, 30, allowed(t, l, "a"))
		for range 1000 {
			require.False(t, take(t, l, "a").Allowed)
		}
		time.Sleep(time.Minute)
		require.Equal(t, 30, allowed(t, l, "a"))
		time.Sleep(time.Minute)
		require.Equal(t, 10, allowed(t, l, "a"), "the day is used up")
		d := take(t, l, "a")
		require.Greater(t, d.RetryAfter, 15*time.Minute, "the wait is the day's, not the minute's")
		require.Equal(t, `"like-60";r=20;t=20, "like-86400";r=0;t=1115`, string(d.AppendStatus(nil)))
	})
}

func TestALookSaysWhatTakeWouldAndTakesNothing(t *testing.T) {
	for _, limits := range [][]limit.Limit{{{Max: 3, Window: time.Minute}}, {{Max: 3, Window: time.Minute}, {Max: 5, Window: time.Hour}}} {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiter(t, limits...)
			look := func() limit.Decision {
				d, err := l.Look(t.Context(), "a")
				require.NoError(t, err)
				return d
			}
			for range 10 {
				require.True(t, look().Allowed)
			}
			for range 3 {
				require.True(t, look().Allowed)
				require.True(t, take(t, l, "a").Allowed)
			}
			d := look()
			require.False(t, d.Allowed)
			require.Equal(t, 20*time.Second, d.RetryAfter)
			require.Equal(t, d, take(t, l, "a"))
			time.Sleep(d.RetryAfter)
			require.True(t, look().Allowed)
			require.Equal(t, 1, allowed(t, l, "a"))
		})
	}
}

func TestTheWaitIsTheLongestOfThoseThatRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, limit.Limit{Max: 10, Window: 24 * time.Hour}, limit.Limit{Max: 10, Window: time.Minute})
		require.Equal(t, 10, allowed(t, l, "a"))
		require.Equal(t, 144*time.Minute, take(t, l, "a").RetryAfter)
	})
}

func TestANewWindowStartsFromTheNextLongerOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, limit.Limit{Max: 1000, Window: 24 * time.Hour}, limit.Limit{Max: 100, Window: time.Hour})
		for range 60 {
			take(t, l, "a")
		}
		time.Sleep(time.Hour) // the hour has all back, the day has not
		require.NoError(t, l.SetLimits(limit.Limit{Max: 50, Window: time.Minute}))
		require.Equal(t, 50, allowed(t, l, "a"))
	})
}

func TestHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, perMinute, limit.Limit{Max: 1000, Window: 24 * time.Hour})
		d := take(t, l, "a")
		require.Equal(t, `"like-60";q=100;w=60, "like-86400";q=1000;w=86400`, d.Policy())
		require.Equal(t, `"like-60";r=99;t=1, "like-86400";r=999;t=87`, string(d.AppendStatus(nil)))
		allowed(t, l, "a")
		d = take(t, l, "a")
		require.Equal(t, `"like-60";r=0;t=1, "like-86400";r=900;t=8640`, string(d.AppendStatus(nil)))
	})
}

func TestALoweredLimitHoldsAtOnceAndRefillsNothing(t *testing.T) {
	day := 24 * time.Hour
	for _, c := range []struct {
		name      string
		old       []limit.Limit
		use       int
		limits    []limit.Limit
		want      int           // allowed at once
		wait      time.Duration // then
		wantAfter int
	}{
		{"below what is used", []limit.Limit{perMinute}, 50, []limit.Limit{{Max: 10, Window: time.Minute}}, 0, 6 * time.Second, 1},
		{"above what is used", []limit.Limit{perMinute}, 5, []limit.Limit{{Max: 10, Window: time.Minute}}, 5, 6 * time.Second, 1},
		{"used up", []limit.Limit{perMinute}, 100, []limit.Limit{{Max: 1, Window: time.Minute}}, 0, 59 * time.Second, 0},
		{"raised", []limit.Limit{{Max: 10, Window: time.Minute}}, 10, []limit.Limit{perMinute}, 90, 600 * time.Millisecond, 1},
		{"the same", []limit.Limit{perMinute}, 60, []limit.Limit{perMinute}, 40, 0, 0},
		{"another window", []limit.Limit{perMinute}, 60, []limit.Limit{{Max: 50, Window: time.Hour}}, 0, 72 * time.Second, 1},
		{"a shorter window", []limit.Limit{{Max: 1000, Window: day}}, 60, []limit.Limit{{Max: 50, Window: time.Minute}}, 0, 1200 * time.Millisecond, 1},
		{"a second window", []limit.Limit{perMinute}, 60, []limit.Limit{perMinute, {Max: 70, Window: day}}, 10, 0, 0},
		{"one window fewer", []limit.Limit{perMinute, {Max: 70, Window: day}}, 70, []limit.Limit{{Max: 80, Window: time.Minute}}, 10, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiter(t, c.old...)
			for range c.use {
				require.True(t, take(t, l, "a").Allowed)
			}
			require.NoError(t, l.SetLimits(c.limits...))
			require.Equal(t, c.want, allowed(t, l, "a"), c.name)
			time.Sleep(c.wait)
			require.Equal(t, c.wantAfter, allowed(t, l, "a"), c.name)
			all := c.limits[0].Max
			for _, l := range c.limits {
				all = min(all, l.Max)
			}
			require.Equal(t, all, allowed(t, l, "b"), "%s: a new key has all of it", c.name)
		})
	}
}

func TestBadLimitsAreRefusedAndChangeNothing(t *testing.T) {
	l := newLimiter(t, limit.Limit{Max: 3, Window: time.Hour})
	take(t, l, "a")
	for _, bad := range [][]limit.Limit{
		nil,
		{{}},
		{{Max: 0, Window: time.Minute}},
		{{Max: -1, Window: time.Minute}},
		{{Max: 1}},
		{{Max: 1, Window: -time.Second}},
		{{Max: 1, Window: time.Millisecond}},
		{{Max: 1, Window: 1500 * time.Millisecond}},
		{{Max: 1, Window: math.MaxInt64}},
		{{Max: limit.MaxCalls + 1, Window: time.Minute}},
		{perMinute, perMinute},
		{perMinute, {}},
		make([]limit.Limit, limit.MaxWindows+1),
	} {
		require.ErrorIs(t, l.SetLimits(bad...), likes.ErrInvalid, "%v", bad)
		_, err := limit.New("like", 1, bad...)
		require.ErrorIs(t, err, likes.ErrInvalid, "%v", bad)
	}
	_, err := limit.New("like", 0, perMinute)
	require.ErrorIs(t, err, likes.ErrInvalid)
	require.Equal(t, 2, allowed(t, l, "a"))
	_, err = limit.New("like", 1, limit.Limit{Max: limit.MaxCalls, Window: time.Second}, limit.Limit{Max: 1, Window: limit.MaxWindow})
	require.NoError(t, err, "the greatest limits are good")
}

func TestAnIdleKeyIsForgottenAndABusyOneIsNot(t *testing.T) {
	l := newLimiter(t, limit.Limit{Max: 2, Window: time.Hour})
	allowed(t, l, "busy")
	allowed(t, l, "idle")
	for i := range 1000 { // of which 100 are remembered
		take(t, l, fmt.Sprint(i))
		require.False(t, take(t, l, "busy").Allowed)
	}
	require.True(t, take(t, l, "idle").Allowed)
}

func TestConcurrentCallsPassExactlyTheLimit(t *testing.T) {
	l := newLimiter(t, limit.Limit{Max: 500, Window: time.Hour}, limit.Limit{Max: 600, Window: 24 * time.Hour})
	var passed atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 200 {
				if d, err := l.Take(t.Context(), "a"); err == nil && d.Allowed {
					passed.Add(1)
				}
				if i%50 == 0 { // setting the same limits changes nothing
					_ = l.SetLimits(limit.Limit{Max: 500, Window: time.Hour}, limit.Limit{Max: 600, Window: 24 * time.Hour})
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 500, passed.Load())
}

// The default number of keys of a bucket takes the memory that New states.
func TestMemoryIsBounded(t *testing.T) {
	const keys = 1 << 16
	l, err := limit.New("like", keys, perMinute)
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 3 * keys {
		take(t, l, fmt.Sprintf("%08d", i))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	perKey := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / keys
	t.Logf("%d bytes a key", perKey)
	require.Less(t, perKey, int64(200))
	runtime.KeepAlive(l)
}

func BenchmarkTake(b *testing.B) {
	l, err := limit.New("like", 1<<16, limit.Limit{Max: limit.MaxCalls, Window: time.Minute})
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Take(b.Context(), "12345678"); err != nil {
			b.Fatal(err)
		}
	}
}
