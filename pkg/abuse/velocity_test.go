package abuse

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"likectl/pkg/likes"
	"likectl/pkg/limit"
)

// model is the velocity limits written down a second time: for every key the
// moment at which all that it used is back (ITU-T I.371).
type model map[string]time.Time

// wait returns how long a key has to wait for one call, 0 if it can take it.
func (m model) wait(key string, l limit.Limit, now time.Time) time.Duration {
	each := l.Window / time.Duration(l.Max)
	back := m[key]
	if back.Before(now) {
		back = now
	}
	return max(0, back.Add(each).Sub(now)-each*time.Duration(l.Max))
}

func (m model) take(key string, l limit.Limit, now time.Time) {
	if m[key].Before(now) {
		m[key] = now
	}
	m[key] = m[key].Add(l.Window / time.Duration(l.Max))
}

// The cast of the random program: user 4 is denied, 3 slowed, item 3 has no owner.
const cast = "user 4 deny\nuser 3 slow\nip 192.0.2.3 slow\n"

func ownersByItem(_ context.Context, items []likes.Item) ([]likes.UserID, error) {
	owners := make([]likes.UserID, len(items))
	for i, item := range items {
		owners[i] = likes.UserID(item.ID % 3)
	}
	return owners, nil
}

// A random program of likes, saves and pauses is decided as the model decides.
func TestVelocityIsThatOfTheModel(t *testing.T) {
	const factor = 3
	list := file(t, cast)
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(struct{ testing.TB }{t}, func(rt *rapid.T) { // without the T's Deadline, which is no time of the bubble
			draw := func(name string) []limit.Limit {
				l := []limit.Limit{{Max: rapid.IntRange(1, 6).Draw(rt, name), Window: 10 * time.Second}}
				if rapid.Bool().Draw(rt, name+" twice") {
					l = append(l, limit.Limit{Max: rapid.IntRange(1, 9).Draw(rt, name+" long"), Window: time.Minute})
				}
				return l[rapid.IntRange(0, 1).Draw(rt, name+" off"):] // often one, sometimes none
			}
			v := Velocity{UserOwner: draw("user_owner"), Item: draw("item"), IP: draw("ip"), Device: draw("device")}
			g, seen := open(rt, Config{Velocity: v, List: list, SlowFactor: factor})
			defer func() { require.NoError(rt, g.Close(context.Background())) }()
			m, refused := model{}, map[string]int{}
			for range rapid.IntRange(1, 60).Draw(rt, "steps") {
				if rapid.IntRange(0, 3).Draw(rt, "pause?") == 0 {
					time.Sleep(time.Duration(rapid.IntRange(1, 20_000).Draw(rt, "ms")) * time.Millisecond)
					continue
				}
				a := like(likes.UserID(rapid.IntRange(1, 4).Draw(rt, "user")), likes.ItemID(rapid.IntRange(1, 4).Draw(rt, "item")),
					rapid.SampledFrom([]string{"", "192.0.2.1", "192.0.2.3"}).Draw(rt, "addr"))
				if rapid.IntRange(0, 4).Draw(rt, "save?") == 0 {
					a.Edge.Counter = likes.Saves
				}
				if name := rapid.SampledFrom([]string{"", "a", "b"}).Draw(rt, "device"); name != "" {
					a.Device, _ = ParseDevice(name)
				}
				var err error
				if rapid.Bool().Draw(rt, "batch") {
					err = g.CheckBatch(context.Background(), []Attempt{a}, ownersByItem)[0]
				} else {
					err = g.Check(context.Background(), a, ownersByItem)
				}
				why, wait := m.decide(a, v, factor, time.Now())
				if why != "" {
					refused[why]++
				}
				used, isUsed := errors.AsType[*LimitError](err)
				switch why {
				case "list":
					require.ErrorIs(rt, err, ErrRefused)
				case "":
					require.NoError(rt, err)
				default:
					require.True(rt, isUsed, "%s was not refused", why)
					require.Equal(rt, LimitError{why, wait}, *used)
				}
			}
			seen.see(func(s *told) { require.Equal(rt, refused, s.refused) })
		})
	})
}

// decide says why the attempt is refused and for how long, and takes if it is not.
func (m model) decide(a Attempt, v Velocity, factor int, now time.Time) (why string, wait time.Duration) {
	if a.Edge.User == 4 {
		return "list", 0
	}
	slow := a.Edge.User == 3 || a.Network == "192.0.2.3"
	owner := likes.UserID(a.Edge.Item.ID % 3)
	type taking struct {
		key   string
		limit limit.Limit
	}
	var all []taking
	add := func(name string, limits []limit.Limit, on bool, of ...any) {
		if !on {
			return
		}
		for _, slowed := range []bool{false, true} {
			if slowed && !slow {
				continue
			}
			for _, l := range limits {
				if slowed {
					l.Max = max(1, l.Max/factor)
				}
				key := fmt.Sprint(name, l.Window, slowed, a.Edge.Counter, of)
				if w := m.wait(key, l, now); w > wait {
					why, wait = name, w
				}
				all = append(all, taking{key, l})
			}
		}
	}
	add("user_owner", v.UserOwner, owner != 0, a.Edge.User, owner)
	add("item", v.Item, true, a.Edge.Item)
	add("ip", v.IP, a.Network != "", a.Network)
	add("device", v.Device, a.Device != Device{}, a.Device)
	if why == "" {
		for _, t := range all {
			m.take(t.key, t.limit, now)
		}
	}
	return why, wait
}

func TestARefusedAttemptCostsNothingOfTheOtherLimits(t *testing.T) {
	g, _ := guard(t, Config{Velocity: Velocity{Item: perMinute(3), IP: perMinute(1)}})
	require.NoError(t, g.Check(t.Context(), like(1, 1, "192.0.2.1"), nil))
	for range 100 { // one address alone does not use up the item for the others
		require.Equal(t, "ip", usedUp(g.Check(t.Context(), like(1, 1, "192.0.2.1"), nil)))
	}
	require.NoError(t, g.Check(t.Context(), like(2, 1, "192.0.2.2"), nil))
	require.NoError(t, g.Check(t.Context(), like(3, 1, "192.0.2.3"), nil))
	require.Equal(t, "item", usedUp(g.Check(t.Context(), like(4, 1, "192.0.2.4"), nil)))
	require.NoError(t, g.Check(t.Context(), like(4, 2, "192.0.2.4"), nil), "the refused like used up its address")
}

func TestOwnersAreAskedForOnlyWhereALimitNeedsThem(t *testing.T) {
	asked := 0
	owners := func(_ context.Context, items []likes.Item) ([]likes.UserID, error) {
		asked++
		return make([]likes.UserID, len(items)), nil
	}
	g, _ := guard(t, Config{Velocity: Velocity{Item: perMinute(100)}})
	require.NoError(t, g.Check(t.Context(), like(1, 1, ""), owners))
	require.Zero(t, asked)
	g, _ = guard(t, Config{Velocity: Velocity{UserOwner: perMinute(1)}, List: file(t, "user 9 deny")})
	for range 3 {
		require.NoError(t, g.Check(t.Context(), like(1, 1, ""), owners), "nobody's items are not limited")
		require.NoError(t, g.Check(t.Context(), like(1, 1, ""), nil))
	}
	require.Equal(t, 3, asked)
	require.ErrorIs(t, g.Check(t.Context(), like(9, 1, ""), owners), ErrRefused)
	require.Equal(t, 3, asked, "a store was asked for a user who is denied")
	require.Empty(t, g.CheckBatch(t.Context(), nil, owners))
	require.Equal(t, 3, asked)

	away := likes.Errorf(likes.ErrUnavailable, "away")
	failing := func(context.Context, []likes.Item) ([]likes.UserID, error) { return nil, away }
	require.ErrorIs(t, g.Check(t.Context(), like(1, 1, ""), failing), likes.ErrUnavailable)
	errs := g.CheckBatch(t.Context(), []Attempt{like(1, 1, ""), like(9, 1, "")}, failing)
	require.ErrorIs(t, errs[0], likes.ErrUnavailable)
	require.ErrorIs(t, errs[1], ErrRefused)
	short := func(context.Context, []likes.Item) ([]likes.UserID, error) { return nil, nil }
	require.ErrorContains(t, g.Check(t.Context(), like(1, 1, ""), short), "0 of 1")
}

func TestABatchIsCheckedEntryByEntry(t *testing.T) {
	g, told := guard(t, Config{Velocity: Velocity{UserOwner: perMinute(2)}, List: file(t, "user 9 deny")})
	errs := g.CheckBatch(t.Context(), []Attempt{
		like(1, 1, ""), like(9, 1, ""), like(1, 4, ""), like(1, 7, ""), like(2, 1, ""), like(1, 2, ""),
	}, ownersByItem) // items 1, 4 and 7 are of owner 1
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], ErrRefused)
	require.NoError(t, errs[2])
	require.Equal(t, "user_owner", usedUp(errs[3]))
	require.NoError(t, errs[4])
	require.NoError(t, errs[5])
	require.Equal(t, map[string]int{"list": 1, "user_owner": 1}, told.refused)
}

func TestBadLimitsAreRefused(t *testing.T) {
	for _, v := range []Velocity{
		{Item: []limit.Limit{{}}, MaxKeys: 1}, {IP: perMinute(0), MaxKeys: 1}, {Device: perMinute(-1), MaxKeys: 1}, {UserOwner: perMinute(1)},
	} {
		_, err := Open(t.Context(), Config{Velocity: v, Refresh: time.Second})
		require.ErrorIs(t, err, likes.ErrInvalid, "%v", v)
	}
	_, err := Open(t.Context(), Config{})
	require.ErrorIs(t, err, likes.ErrInvalid)
	_, err = Open(t.Context(), Config{Refresh: time.Second, List: "x", SlowFactor: 1})
	require.ErrorContains(t, err, "slow factor")
}
