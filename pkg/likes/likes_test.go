package likes_test

import (
	"io"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"likectl/pkg/likes"
)

func TestParseIDTakesThePlainDigitsOf1To2Pow63Minus1(t *testing.T) {
	for _, s := range []string{"1", "9", "10", "9007199254740993", "9223372036854775807"} {
		n, err := likes.ParseID(s)
		require.NoError(t, err, s)
		require.Equal(t, s, strconv.FormatInt(n, 10))
		n, err = likes.ParseID([]byte(s))
		require.NoError(t, err, s)
		require.Equal(t, s, strconv.FormatInt(n, 10))
	}
}

func TestParseIDRefusesEverySpellingButTheShortest(t *testing.T) {
	for _, s := range []string{
		"", "0", "-1", "+1", "01", " 1", "1 ", "1.0", "1e3", "0x1", "1_000", "9223372036854775808", "18446744073709551616",
		"99999999999999999999", "١", "１", "1\x00", "null", "\"1\"", "NaN",
	} {
		_, err := likes.ParseID(s)
		require.ErrorIs(t, err, likes.ErrInvalid, "%q", s)
	}
}

func FuzzParseID(f *testing.F) {
	for _, s := range []string{"1", "01", "9223372036854775807", "9223372036854775808", "1e3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := likes.ParseID(s)
		want, werr := strconv.ParseInt(s, 10, 64)
		if werr == nil && want > 0 && strconv.FormatInt(want, 10) == s {
			require.NoError(t, err)
			require.Equal(t, want, n)
		} else {
			require.ErrorIs(t, err, likes.ErrInvalid)
		}
	})
}

func TestShortIsTruncatedAndNeverLies(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 1: "1", 999: "999", 1000: "1K", 1049: "1K", 1099: "1K", 1100: "1.1K", 1524: "1.5K", 9999: "9.9K", 10_000: "10K",
		999_499: "999.4K", 999_949: "999.9K", 999_950: "999.9K", 999_999: "999.9K", 1_000_000: "1M", 999_999_999: "999.9M",
		1_000_000_000: "1B", 1_000_000_000_000: "1T", math.MaxInt64: "9223372T", -1: "-1", -1524: "-1.5K", math.MinInt64: "-9223372T",
	} {
		require.Equal(t, want, likes.Short(n), "%d", n)
	}
}

// worth reads a short number back, exactly.
func worth(t require.TestingT, s string) float64 {
	unit := map[byte]float64{'K': 1e3, 'M': 1e6, 'B': 1e9, 'T': 1e12}[s[len(s)-1]]
	if unit == 0 {
		unit = 1
	} else {
		s = s[:len(s)-1]
	}
	f, err := strconv.ParseFloat(s, 64)
	require.NoError(t, err)
	return f * unit
}

func TestShortIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Int64Range(0, math.MaxInt64).Draw(t, "a")
		b := rapid.Int64Range(a, math.MaxInt64).Draw(t, "b")
		require.LessOrEqual(t, worth(t, likes.Short(a)), worth(t, likes.Short(b)))
		require.LessOrEqual(t, worth(t, likes.Short(a)), float64(a)*(1+1e-15))
	})
}

func TestClockHasTheMicrosecondAndTheInstance(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.UTC)
	k := likes.ClockAt(at, 0xabc)
	require.Equal(t, at.Truncate(time.Microsecond), k.Time())
	require.Equal(t, uint16(0xabc), k.Instance())
	require.Equal(t, k.Time().Add(time.Microsecond), k.Next().Time())
	require.Equal(t, k.Instance(), k.Next().Instance())
	require.Zero(t, likes.ClockAt(likes.ClockEpoch().Add(-time.Microsecond), 1))
	require.Equal(t, likes.Clock(1), likes.ClockAt(likes.ClockEpoch(), 1))
	require.Equal(t, "2026-11-30T12:00:00.123456Z@2748", k.String())
}

func TestAboveMaxClockThereIsRoomForIssuedOperations(t *testing.T) {
	require.Equal(t, 2091, likes.MaxClock.Time().Year())
	require.Greater(t, math.MaxInt64-int64(likes.MaxClock), int64(1)<<51)
	old := likes.Register{Liked: true, Clock: likes.MaxClock} // as a replay leaves it
	for range 3 {
		issued, _ := old.Issue(!old.Liked, 1, time.Now())
		m := likes.Mutation{Op: likes.Set, Edge: likes.Edge{Counter: likes.Likes, Item: likes.Item{Type: 1, ID: 1}, User: 1}, After: issued.Clock}
		require.NoError(t, m.Validate(), "the token of an issued operation is good for the next one")
		old = issued
	}
	m := likes.Mutation{Op: likes.Set, Edge: likes.Edge{Counter: likes.Likes, Item: likes.Item{Type: 1, ID: 1}, User: 1}, After: math.MaxInt64}
	require.ErrorIs(t, m.Validate(), likes.ErrInvalid)
}

func drawRegister(t *rapid.T, name string) likes.Register {
	return likes.Register{
		Liked: rapid.Bool().Draw(t, name+" liked"),
		Clock: likes.Clock(rapid.Int64Range(1, 50).Draw(t, name+" clock")) << 12,
	}
}

func TestAnIssuedOperationAlwaysWins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old := drawRegister(t, "old")
		liked, clock := rapid.Bool().Draw(t, "liked"), likes.Clock(rapid.Int64Range(1, 50).Draw(t, "clock"))<<12
		got, changed := old.Issue(liked, clock, clock.Time())
		require.Equal(t, liked, got.Liked)
		require.Equal(t, old.Liked != liked, changed)
		require.GreaterOrEqual(t, got.Clock, clock)
		require.GreaterOrEqual(t, got.Clock, old.Clock.Next(), "also when it changes nothing")
		again, applied := got.Replay(old.Liked, old.Clock, old.LikedAt)
		require.False(t, applied, "what was stored before must lose against it")
		require.Equal(t, got, again)
	})
}

func TestARepeatedLikeKeepsWhenItBegan(t *testing.T) {
	first, _ := likes.Register{}.Issue(true, 1<<12, time.Unix(1, 0))
	second, changed := first.Issue(true, 2<<12, time.Unix(2, 0))
	require.False(t, changed)
	require.Equal(t, time.Unix(1, 0), second.LikedAt)
	third, _ := second.Issue(false, 3<<12, time.Unix(3, 0))
	fourth, _ := third.Issue(true, 4<<12, time.Unix(4, 0))
	require.Equal(t, time.Unix(4, 0), fourth.LikedAt)
}

func TestReplaysCommuteAndRepeat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ops := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) likes.Register { return drawRegister(t, "op") }), 1, 8).Draw(t, "ops")
		apply := func(ops []likes.Register) likes.Register {
			var r likes.Register
			for _, o := range ops {
				r, _ = r.Replay(o.Liked, o.Clock, o.Clock.Time())
			}
			return r
		}
		want := apply(ops)
		require.Equal(t, want, apply(rapid.Permutation(ops).Draw(t, "order")))
		require.Equal(t, want, apply(append(ops, ops...)))
	})
}

func TestOfEqualClocksTheUnlikeWins(t *testing.T) {
	like, _ := likes.Register{}.Replay(true, 5<<12, time.Time{})
	unlike, applied := like.Replay(false, 5<<12, time.Time{})
	require.True(t, applied)
	require.False(t, unlike.Liked)
	_, applied = unlike.Replay(true, 5<<12, time.Time{})
	require.False(t, applied)
}

func TestEdgesAreOrderedByCounterTypeItemUser(t *testing.T) {
	e := func(c likes.Counter, typ likes.ItemType, id likes.ItemID, u likes.UserID) likes.Edge {
		return likes.Edge{Counter: c, Item: likes.Item{Type: typ, ID: id}, User: u}
	}
	in := []likes.Edge{e(1, 1, 1, 2), e(1, 1, 2, 1), e(1, 2, 1, 1), e(4, 1, 1, 1)}
	for i := range in {
		for j := range in {
			require.Equal(t, i < j, in[i].Compare(in[j]) < 0)
			require.Equal(t, i == j, in[i].Compare(in[j]) == 0)
		}
	}
}

func TestMalformedMutationsAreInvalid(t *testing.T) {
	good := likes.Mutation{Op: likes.Set, Edge: likes.Edge{Counter: likes.Likes, Item: likes.Item{Type: 1, ID: 1}, User: 1}}
	require.NoError(t, good.Validate())
	for name, spoil := range map[string]func(*likes.Mutation){
		"op":        func(m *likes.Mutation) { m.Op = 9 },
		"counter":   func(m *likes.Mutation) { m.Edge.Counter = 5 },
		"tally":     func(m *likes.Mutation) { m.Edge.Counter = likes.Views },
		"event id":  func(m *likes.Mutation) { m.Event = likes.EventID{1} },
		"user_id":   func(m *likes.Mutation) { m.Edge.User = 0 },
		"item_id":   func(m *likes.Mutation) { m.Edge.Item.ID = -1 },
		"item_type": func(m *likes.Mutation) { m.Edge.Item.Type = 0 },
		"replay":    func(m *likes.Mutation) { m.Fixed = likes.MaxClock + 1 },
		"liked_at":  func(m *likes.Mutation) { m.LikedAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"after":     func(m *likes.Mutation) { m.After = -1 },
	} {
		m := good
		spoil(&m)
		err := m.Validate()
		require.ErrorIs(t, err, likes.ErrInvalid, name)
		require.ErrorContains(t, err, name)
	}
}

func TestSizesOfCalls(t *testing.T) {
	items := make([]likes.Item, likes.MaxRead+1)
	for i := range items {
		items[i] = likes.Item{Type: 1, ID: 1}
	}
	require.NoError(t, likes.CheckCounts(likes.Likes, items[:likes.MaxRead]))
	require.NoError(t, likes.CheckCounts(likes.Views, items[:1]))
	require.NoError(t, likes.CheckHas(likes.Saves, 1, items[:likes.MaxRead]))
	require.ErrorIs(t, likes.CheckCounts(likes.Likes, items), likes.ErrInvalid)
	require.ErrorIs(t, likes.CheckCounts(likes.Likes, nil), likes.ErrInvalid)
	require.ErrorIs(t, likes.CheckCounts(5, items[:1]), likes.ErrInvalid)
	require.ErrorIs(t, likes.CheckHas(likes.Likes, 1, items), likes.ErrInvalid)
	require.ErrorIs(t, likes.CheckHas(likes.Views, 1, items[:1]), likes.ErrInvalid)
	require.ErrorIs(t, likes.CheckHas(likes.Likes, 0, items[:1]), likes.ErrInvalid)
	items[7].ID = 0
	require.ErrorContains(t, likes.CheckCounts(likes.Likes, items[:9]), "items[7]")
	require.ErrorContains(t, likes.CheckHas(likes.Likes, 1, items[:9]), "items[7]")
	require.NoError(t, likes.CheckApply(likes.MaxApply))
	require.ErrorIs(t, likes.CheckApply(likes.MaxApply+1), likes.ErrInvalid)
	require.ErrorIs(t, likes.CheckApply(0), likes.ErrInvalid)
	require.NoError(t, likes.CheckPage(likes.Saves, likes.MaxPage))
	require.ErrorIs(t, likes.CheckPage(likes.Likes, likes.MaxPage+1), likes.ErrInvalid)
	require.ErrorIs(t, likes.CheckPage(likes.Likes, 0), likes.ErrInvalid)
}

func TestAnErrorHasItsKindItsCauseAndItsOwnWords(t *testing.T) {
	err := likes.Errorf(likes.ErrUncertain, "commit of 3 edges: %w", io.ErrUnexpectedEOF)
	require.ErrorIs(t, err, likes.ErrUncertain)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.NotErrorIs(t, err, likes.ErrUnavailable)
	require.EqualError(t, err, "commit of 3 edges: unexpected EOF")
}

func TestItemTypes(t *testing.T) {
	m := likes.DefaultItemTypes()
	for name, want := range map[string]likes.ItemType{"post": 1, "reel": 2, "comment": 3} {
		got, ok := m.TypeBytes([]byte(name))
		require.True(t, ok)
		require.Equal(t, want, got)
		require.Equal(t, name, m.Name(want))
	}
	require.Equal(t, []string{"post", "reel", "comment"}, m.Names())
	_, ok := m.Type("Post")
	require.False(t, ok)
	require.Equal(t, "77", m.Name(77))
	for _, bad := range []map[string]likes.ItemType{{"": 1}, {"a b": 1}, {"a:b": 1}, {"a\"": 1}, {"a": 0}, {"a": 1, "b": 1}} {
		_, err := likes.NewItemTypes(bad)
		require.ErrorIs(t, err, likes.ErrInvalid, "%v", bad)
	}
}

func TestNamesOfValues(t *testing.T) {
	require.Equal(t, "likes", likes.Likes.String())
	c, err := likes.ParseCounter("saves")
	require.NoError(t, err)
	require.Equal(t, likes.Saves, c)
	for _, tally := range []likes.Counter{likes.Views, likes.Shares} {
		c, err = likes.ParseCounter(tally.String())
		require.NoError(t, err)
		require.Equal(t, tally, c)
		_, err = likes.ParseSetCounter(tally.String())
		require.ErrorIs(t, err, likes.ErrInvalid)
		require.ErrorContains(t, err, "tally")
	}
	for _, name := range []string{"", "like", "Likes", "counter 5"} {
		_, err = likes.ParseCounter(name)
		require.ErrorIs(t, err, likes.ErrInvalid)
	}
	require.Equal(t, "unlike", likes.Clear.String())
	require.Equal(t, "add", likes.Add.String())
	require.Equal(t, "superseded", likes.Superseded.String())
	require.Equal(t, "cache", likes.FromCache.String())
	require.Equal(t, "committed", likes.AckCommitted.String())
}

func TestUnionOfRegisters(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	liked := func(clock likes.Clock, at time.Time) likes.Register {
		return likes.Register{Liked: true, Clock: clock, LikedAt: at}
	}
	gone := func(clock likes.Clock) likes.Register { return likes.Register{Clock: clock} }
	const early, late = likes.Clock(5 << 12), likes.Clock(9<<12 | 3)
	for name, c := range map[string]struct{ a, b, want likes.Register }{
		"nothing there":                     {likes.Register{}, liked(early, day(1)), liked(early, day(1))},
		"both liked, the newer since later": {liked(early, day(1)), liked(late, day(2)), liked(late.Next(), day(1))},
		"both liked, the newer since then":  {liked(early, day(2)), liked(late, day(1)), liked(late, day(1))},
		"both liked, at once":               {liked(early, day(1)), liked(late, day(1)), liked(late, day(1))},
		"the newer taken back":              {liked(early, day(1)), gone(late), liked(late.Next(), day(1))},
		"the older taken back":              {gone(early), liked(late, day(2)), liked(late, day(2))},
		"both taken back":                   {gone(early), gone(late), gone(late)},
		"equal clocks":                      {liked(late, day(1)), gone(late), liked(late.Next(), day(1))},
	} {
		require.Equal(t, c.want, c.a.Union(c.b), name)
		require.Equal(t, c.want, c.b.Union(c.a), name)
	}
}
