package ingest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"likectl/pkg/likes"
	"likectl/pkg/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// model is the rule of the package's doc, told naively.
type model map[likes.Edge]modelRegister

type modelRegister struct {
	micros int64
	liked  bool
}

func (m model) line(e likes.Edge, micros int64, liked bool) {
	if old, ok := m[e]; !ok || micros >= old.micros {
		m[e] = modelRegister{micros, liked}
	}
}

// drawFile draws a file whose lines collide as often as they can.
func drawFile(t *rapid.T) (string, model) {
	var text strings.Builder
	text.WriteString("user_id,item_type,item_id,action,liked_at\n")
	want := model{}
	n := rapid.IntRange(1, 60).Draw(t, "lines")
	for line := int64(2); line < int64(2+n); line++ {
		e := edge(likes.UserID(rapid.IntRange(1, 2).Draw(t, "user")), 1, likes.ItemID(rapid.IntRange(1, 2).Draw(t, "item")))
		liked := rapid.Bool().Draw(t, "liked")
		micros, when := line, ""
		switch second := rapid.IntRange(-1, 3).Draw(t, "second"); {
		case second >= 0:
			micros = int64(second) * 1e6
			when = likes.ClockEpoch().Add(time.Duration(second) * time.Second).Format(time.RFC3339)
		case rapid.Bool().Draw(t, "old"):
			when = "2012-01-01T00:00:00Z"
		}
		action := "unlike"
		if liked {
			action = "like"
		}
		fmt.Fprintf(&text, "%d,post,%d,%s,%s\n", e.User, e.Item.ID, action, when)
		want.line(e, micros, liked)
	}
	return text.String(), want
}

// Of the filter of 256 bits nearly all answers are false positives in the end.
func TestTheLaterOfEqualLinesWinsInAnyOrderAndTwice(t *testing.T) {
	for _, bits := range []uint{256, 1 << 10, 1 << 20} {
		t.Run(fmt.Sprint(bits), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				text, want := drawFile(rt)
				r, err := openReader(strings.NewReader(text), config(), bits)
				require.NoError(rt, err)
				ms := all(t, r)
				again, err := openReader(strings.NewReader(text), config(), bits)
				require.NoError(rt, err)
				require.Equal(rt, ms, all(t, again), "the same file has the same clocks")

				service := memory.New()
				shuffled := rapid.Permutation(ms).Draw(rt, "order")
				for _, m := range shuffled {
					require.NoError(rt, service.Apply(t.Context(), []likes.Mutation{m})[0].Err)
				}
				requireModel(rt, service, want)
				for _, m := range ms {
					require.Equal(rt, likes.Superseded, service.Apply(t.Context(), []likes.Mutation{m})[0].Outcome)
				}
			})
		})
	}
}

func requireModel(t require.TestingT, s likes.Service, want model) {
	counts := map[likes.Item]int64{}
	for e, r := range want {
		has := s.Has(context.Background(), likes.Likes, e.User, []likes.Item{e.Item}, nil)[0]
		require.NoError(t, has.Err)
		require.Equal(t, r.liked, has.Liked, "%v", e)
		require.Equal(t, r.micros, has.Clock.Micros(), "%v", e)
		counts[e.Item] += int64(number(r.liked))
	}
	for item, n := range counts {
		count := s.Counts(context.Background(), likes.Likes, []likes.Item{item}, nil)[0]
		require.NoError(t, count.Err)
		require.Equal(t, n, count.N, "%v", item)
	}
}

func TestRanksFitTheClockOrTheLineIsBad(t *testing.T) {
	k := newRanks(1 << 20)
	const ranks = 100 // that are left above the first
	first := lineClock(10) - 1 - ranks
	next := func(op likes.Op) (likes.Clock, error) {
		m := likes.Mutation{Op: op, Edge: edge(1, 1, 1), Fixed: first}
		err := k.rank(&m)
		return m.Fixed, err
	}
	for n := range 5000 { // repeats need no rank
		c, err := next(likes.Set)
		require.NoError(t, err)
		require.Equal(t, first, c, n)
	}
	for n := range ranks {
		_, err := next(likes.Clear)
		require.NoError(t, err)
		c, err := next(likes.Set)
		require.NoError(t, err)
		require.Equal(t, first+likes.Clock(n+1), c)
	}
	_, err := next(likes.Clear)
	require.NoError(t, err)
	_, err = next(likes.Set)
	require.ErrorIs(t, err, errTooManyTies)
	other := likes.Mutation{Op: likes.Set, Edge: edge(1, 1, 1), Fixed: lineClock(10)}
	require.NoError(t, k.rank(&other))
	require.Equal(t, lineClock(10), other.Fixed, "the next microsecond is untouched")
}

func TestTheFilterGrowsWithTheFileWithinItsBounds(t *testing.T) {
	require.EqualValues(t, minFilterBits, filterBits(0))
	require.EqualValues(t, minFilterBits, filterBits(minFilterBits*fileBytesPerBit))
	require.EqualValues(t, 2*minFilterBits, filterBits(minFilterBits*fileBytesPerBit+fileBytesPerBit))
	require.EqualValues(t, maxFilterBits, filterBits(1<<62))
}

// importText runs an import of the text into a service.
func importText(ctx context.Context, t *testing.T, text string, apply ApplyFunc, change func(*Config)) (Summary, error) {
	t.Helper()
	c := DefaultConfig()
	c.Batch, c.Lanes = 7, 3
	if change != nil {
		change(&c)
	}
	i, err := NewImport(open(t, text), apply, c)
	require.NoError(t, err)
	return i.Run(ctx)
}

// file returns a file of n likes of n users for 10 items.
func file(n int) string {
	var text strings.Builder
	text.WriteString("user_id,item_type,item_id\n")
	for i := range n {
		fmt.Fprintf(&text, "%d,post,%d\n", i+1, i%10+1)
	}
	return text.String()
}

func total(t *testing.T, s likes.Service) (n int64) {
	t.Helper()
	for item := range 10 {
		n += s.Counts(t.Context(), likes.Likes, []likes.Item{{Type: 1, ID: likes.ItemID(item + 1)}}, nil)[0].N
	}
	return n
}

func TestImportTwiceChangesNothingTheSecondTime(t *testing.T) {
	s := memory.New()
	sum, err := importText(t.Context(), t, file(1000), s.Apply, nil)
	require.NoError(t, err)
	require.Equal(t, Summary{Lines: 1000, Changed: 1000, Through: 1001}, sum)
	sum, err = importText(t.Context(), t, file(1000), s.Apply, nil)
	require.NoError(t, err)
	require.Equal(t, Summary{Lines: 1000, Superseded: 1000, Through: 1001}, sum)
	require.EqualValues(t, 1000, total(t, s))
}

func TestDryRunReadsOnly(t *testing.T) {
	sum, err := importText(t.Context(), t, file(10), nil, nil)
	require.NoError(t, err)
	require.Equal(t, Summary{Lines: 10, Through: 11}, sum)
}

func TestABadLineStopsOrIsSkipped(t *testing.T) {
	text := file(20) + "1,post,1\nx,post,1\n" + strings.TrimPrefix(file(30), "user_id,item_type,item_id\n")
	s := memory.New()
	sum, err := importText(t.Context(), t, text, s.Apply, nil)
	var bad *LineError
	require.ErrorAs(t, err, &bad)
	require.EqualValues(t, 23, bad.Line)
	require.EqualValues(t, 22, sum.Through)
	require.EqualValues(t, 21, sum.Applied(), "everything before the bad line has been applied")
	require.EqualValues(t, 20, total(t, s))

	sum, err = importText(t.Context(), t, text, s.Apply, func(c *Config) { c.Skip = true })
	require.NoError(t, err)
	require.EqualValues(t, 1, sum.Skipped)
	require.EqualValues(t, 23, sum.Bad[0].Line)
	require.EqualValues(t, 51, sum.Lines)
	require.EqualValues(t, 30, total(t, s))
}

func TestSkippedLinesAreCountedAndTheFirstKept(t *testing.T) {
	sum, err := importText(t.Context(), t, "user_id,item_type,item_id\n"+strings.Repeat("x,post,1\n", 3*MaxBad), nil,
		func(c *Config) { c.Skip = true })
	require.NoError(t, err)
	require.EqualValues(t, 3*MaxBad, sum.Skipped)
	require.Len(t, sum.Bad, MaxBad)
}

// flaky refuses or half-does calls at random before it lets them through.
func flaky(s likes.Service) ApplyFunc {
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(1, 2))
	kinds := []error{likes.ErrOverloaded, likes.ErrUnavailable, likes.ErrUncertain}
	return func(ctx context.Context, ms []likes.Mutation) []likes.Result {
		mu.Lock()
		defer mu.Unlock()
		out := make([]likes.Result, len(ms))
		for i := range ms {
			kind := kinds[r.IntN(3)]
			fail := r.IntN(2) == 0
			if !fail || errors.Is(kind, likes.ErrUncertain) && r.IntN(2) == 0 {
				out[i] = s.Apply(ctx, ms[i:i+1])[0]
			}
			if fail {
				out[i] = likes.Result{Err: likes.Errorf(kind, "not now")}
			}
		}
		return out
	}
}

func TestWhatTheStoreRefusesIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		sum, err := importText(t.Context(), t, file(500), flaky(s), nil)
		require.NoError(t, err)
		require.EqualValues(t, 500, sum.Applied())
		require.EqualValues(t, 500, total(t, s))
	})
}

// TestStalledSaysWhyNothingGetsThrough and no longer than that is so.
func TestStalledSaysWhyNothingGetsThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		var work *Import
		calls := 0
		apply := func(ctx context.Context, ms []likes.Mutation) []likes.Result {
			if calls++; calls == 1 {
				require.Empty(t, work.Stalled())
				return []likes.Result{{Err: likes.Errorf(likes.ErrUncertain, "the line is cut")}}
			}
			require.Contains(t, work.Stalled(), "the line is cut")
			return s.Apply(ctx, ms)
		}
		r, err := OpenReader(strings.NewReader(file(1)), ReaderConfig{Types: likes.DefaultItemTypes()})
		require.NoError(t, err)
		work, err = NewImport(r, apply, DefaultConfig())
		require.NoError(t, err)
		sum, err := work.Run(t.Context())
		require.NoError(t, err)
		require.Empty(t, work.Stalled())
		require.True(t, sum.Uncertain)
		require.Equal(t, 2, calls)
	})
}

func TestGivingUpNamesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		broken := func(ctx context.Context, ms []likes.Mutation) []likes.Result {
			out := s.Apply(ctx, ms)
			for i, m := range ms {
				if m.Edge.User == 100 {
					out[i] = likes.Result{Err: likes.ErrUnavailable}
				}
			}
			return out
		}
		began := time.Now()
		sum, err := importText(t.Context(), t, file(1000), broken, func(c *Config) { c.RetryFor = time.Minute })
		require.ErrorIs(t, err, likes.ErrUnavailable)
		require.ErrorContains(t, err, "gave up after 1m0s")
		require.Greater(t, time.Since(began), time.Minute)
		require.Less(t, sum.Through, int64(101), "the line of user 100")
		for user := int64(1); user < sum.Through; user++ {
			item := likes.Item{Type: 1, ID: likes.ItemID((user-1)%10 + 1)}
			require.True(t, s.Has(t.Context(), likes.Likes, likes.UserID(user), []likes.Item{item}, nil)[0].Liked, user)
		}
	})
}

func TestOtherErrorsAreNotRepeated(t *testing.T) {
	calls := 0
	sum, err := importText(t.Context(), t, file(3), func(_ context.Context, ms []likes.Mutation) []likes.Result {
		calls++
		out := make([]likes.Result, len(ms))
		out[0].Err = likes.Errorf(likes.ErrFenced, "the lease has passed")
		return out
	}, func(c *Config) { c.Lanes = 1 })
	require.ErrorIs(t, err, likes.ErrFenced)
	require.Equal(t, 1, calls)
	require.EqualValues(t, 1, sum.Through)
}

func TestInterruptedItFinishesWhatItHasRead(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := memory.New()
	apply := func(ctx context.Context, ms []likes.Mutation) []likes.Result {
		cancel()
		if err := ctx.Err(); err != nil {
			return slices.Repeat([]likes.Result{{Err: err}}, len(ms))
		}
		return s.Apply(ctx, ms)
	}
	sum, err := importText(ctx, t, file(100_000), apply, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, sum.Lines, int64(100_000))
	require.Equal(t, sum.Lines, sum.Applied(), "every line that was read")
	require.Equal(t, sum.Lines+1, sum.Through)
	require.Equal(t, sum.Applied(), total(t, s))
}

func TestInterruptedWhileTheStoreIsAwayItDoesNotRepeat(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	apply := func(_ context.Context, ms []likes.Mutation) []likes.Result {
		cancel()
		return slices.Repeat([]likes.Result{{Err: likes.ErrUnavailable}}, len(ms))
	}
	sum, err := importText(ctx, t, file(1000), apply, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.EqualValues(t, 1, sum.Through, "the header")
	require.Zero(t, sum.Applied())
}

func TestLimitsAreChecked(t *testing.T) {
	for _, change := range []func(*Config){
		func(c *Config) { c.Batch = 0 },
		func(c *Config) { c.Batch = likes.MaxApply + 1 },
		func(c *Config) { c.Lanes = -1 },
		func(c *Config) { c.Lanes = maxLanes + 1 },
		func(c *Config) { c.RetryFor = 0 },
		func(c *Config) { c.CallTimeout = 0 },
	} {
		c := DefaultConfig()
		change(&c)
		_, err := NewImport(nil, nil, c)
		require.ErrorIs(t, err, likes.ErrInvalid)
	}
}
