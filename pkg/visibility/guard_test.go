package visibility_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"likectl/pkg/likes"
	"likectl/pkg/memory"
	"likectl/pkg/store"
	"likectl/pkg/visibility"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	secretItem = likes.Item{Type: 1, ID: 1}
	openItem   = likes.Item{Type: 1, ID: 2}
	noItem     = likes.Item{Type: 1, ID: 3}
)

// source is the oracle, counting what it is asked; it fails while fault is set and
// waits for gate, if there is one, after it has read.
type source struct {
	*memory.Service
	mu               sync.Mutex
	facts, restricts int
	asked            []likes.Item
	fault            error
	gate             chan struct{}
}

func (s *source) enter(counter *int, items []likes.Item) (chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*counter++
	s.asked = append(s.asked, items...)
	return s.gate, s.fault
}

func (s *source) Facts(ctx context.Context, viewer likes.UserID, items []likes.Item, out []visibility.Facts) error {
	gate, err := s.enter(&s.facts, items)
	if err != nil {
		return err
	}
	err = s.Service.Facts(ctx, viewer, items, out)
	if gate != nil {
		<-gate
	}
	return err
}

func (s *source) Restricts(ctx context.Context) (bool, error) {
	gate, err := s.enter(&s.restricts, nil)
	if err != nil {
		return false, err
	}
	r, err := s.Service.Restricts(ctx)
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	return r, err
}

func newGuard(tb testing.TB, change ...func(*visibility.Config)) (*visibility.Guard, *source) {
	tb.Helper()
	s := &source{Service: memory.New()}
	cfg := visibility.Config{Source: s, Cache: time.Second, MaxEntries: 1000}
	for _, c := range change {
		c(&cfg)
	}
	g, err := visibility.New(cfg)
	require.NoError(tb, err)
	return g, s
}

func registered(c *visibility.Config) { c.Registered = true }

// makePrivate makes an item user 7's alone.
func makePrivate(tb testing.TB, s *source, item likes.Item) {
	tb.Helper()
	owner := likes.UserID(7)
	_, _, err := s.PutItem(tb.Context(), store.ItemChange{Item: item, Owner: &owner, Level: visibility.Private})
	require.NoError(tb, err)
}

func visible(tb testing.TB, g *visibility.Guard, viewer likes.UserID, item likes.Item) bool {
	tb.Helper()
	d, err := g.One(tb.Context(), viewer, item)
	require.NoError(tb, err)
	return d.Visible
}

func TestGuard_WithoutRowsNothingIsAskedButOnceInAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := newGuard(t)
		require.False(t, g.Open(), "before the first look nothing is known")
		for range 3 {
			for range 100 {
				require.True(t, visible(t, g, 9, openItem))
				ds, err := g.Look(t.Context(), 9, []likes.Item{openItem, noItem})
				require.NoError(t, err)
				require.Nil(t, ds)
				ds, err = g.LookEach(t.Context(), []likes.UserID{1, 2}, []likes.Item{openItem, noItem})
				require.NoError(t, err)
				require.Nil(t, ds)
			}
			require.True(t, g.Open())
			time.Sleep(time.Second)
			require.False(t, g.Open())
		}
		require.Equal(t, 3, s.restricts)
		require.Zero(t, s.facts)
		// A row that another process made is seen after that while.
		require.True(t, visible(t, g, 9, secretItem))
		makePrivate(t, s, secretItem)
		require.True(t, visible(t, g, 9, secretItem))
		time.Sleep(time.Second)
		require.False(t, visible(t, g, 9, secretItem))
		require.True(t, visible(t, g, 7, secretItem))
	})
}

func TestGuard_DecisionsAreRememberedByViewerAndItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := newGuard(t, registered)
		makePrivate(t, s, secretItem)
		items := []likes.Item{secretItem, noItem}
		for round := 1; round <= 2; round++ {
			for range 10 {
				ds, err := g.Look(t.Context(), 9, items)
				require.NoError(t, err)
				require.Equal(t, visibility.Decisions{{}, {}}, ds)
			}
			require.Equal(t, round, s.facts, "what is not to be seen is remembered as well")
			require.Equal(t, items, s.asked[2*(round-1):], "and what does not exist is asked for the same")
			time.Sleep(time.Second)
		}
		require.True(t, visible(t, g, 7, secretItem))
		require.Equal(t, 3, s.facts)
		ds, err := g.Look(t.Context(), 7, items) // one of them is known
		require.NoError(t, err)
		require.Equal(t, visibility.Decisions{{Visible: true, CountsShown: true}, {}}, ds)
		require.Equal(t, []likes.Item{secretItem, noItem, secretItem, noItem, secretItem, noItem}, s.asked)
	})
}

func TestGuard_OwnChangesAreSeenAtOnce(t *testing.T) {
	g, s := newGuard(t)
	require.True(t, visible(t, g, 9, secretItem))
	makePrivate(t, s, secretItem)
	g.ForgetItem(secretItem)
	require.False(t, g.Open())
	require.False(t, visible(t, g, 9, secretItem))

	_, _, err := s.PutItem(t.Context(), store.ItemChange{Item: secretItem, Level: visibility.Followers})
	require.NoError(t, err)
	g.ForgetItem(secretItem)
	require.False(t, visible(t, g, 9, secretItem))
	_, err = s.PutFollow(t.Context(), store.Follow{Follower: 9, Followee: 7}, true)
	require.NoError(t, err)
	g.ForgetUsers(9)
	require.True(t, visible(t, g, 9, secretItem))
	_, err = s.PutBlock(t.Context(), store.Block{Blocker: 9, Blocked: 7}, true)
	require.NoError(t, err)
	g.ForgetUsers(9, 7)
	require.False(t, visible(t, g, 9, secretItem), "a block counts both ways")
	_, err = s.PutBlock(t.Context(), store.Block{Item: openItem, Blocked: 9}, true)
	require.NoError(t, err)
	g.ForgetItem(openItem)
	require.False(t, visible(t, g, 9, openItem))
	require.True(t, visible(t, g, 10, openItem))
}

// A read that began before a change must not be remembered after it, nor be what a
// question asked after the change gets.
func TestGuard_AReadOvertakenByAChangeIsNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := newGuard(t)
		s.gate = make(chan struct{})
		slow := make(chan bool, 1)
		go func() { // reads that nothing restricts, and stands at the gate
			d, err := g.One(t.Context(), 9, secretItem)
			slow <- err == nil && d.Visible
		}()
		synctest.Wait()
		makePrivate(t, s, secretItem)
		g.ForgetItem(secretItem)
		after := make(chan bool, 1)
		go func() {
			d, err := g.One(t.Context(), 9, secretItem)
			after <- err == nil && d.Visible
		}()
		synctest.Wait()
		require.Equal(t, 2, s.restricts, "who asks after the change does not share the look of before")
		s.gate <- struct{}{} // the first who came is the first to go on
		require.True(t, <-slow)
		require.False(t, g.Open(), "what was read before the change is remembered after it")
		close(s.gate)
		require.False(t, <-after)

		// The same of an item's facts.
		s.gate = make(chan struct{})
		go func() {
			d, err := g.One(t.Context(), 10, secretItem)
			slow <- err == nil && d.Visible
		}()
		synctest.Wait()
		_, _, err := s.PutItem(t.Context(), store.ItemChange{Item: secretItem, Level: visibility.Public})
		require.NoError(t, err)
		g.ForgetItem(secretItem)
		close(s.gate)
		require.False(t, <-slow)
		s.gate = nil
		require.True(t, visible(t, g, 10, secretItem))
	})
}

func TestGuard_ManyWhoAskAtOnceShareOneLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := newGuard(t)
		s.gate = make(chan struct{})
		gone, cancel := context.WithCancel(t.Context())
		answers := make(chan error, 51)
		go func() {
			_, err := g.One(gone, 9, openItem)
			answers <- err
		}()
		synctest.Wait()
		for range 50 {
			go func() {
				_, err := g.One(t.Context(), 9, openItem)
				answers <- err
			}()
		}
		synctest.Wait()
		cancel() // the one whose question it was goes away
		require.ErrorIs(t, <-answers, likes.ErrUnavailable)
		close(s.gate)
		for range 50 {
			require.NoError(t, <-answers)
		}
		require.Equal(t, 1, s.restricts)
	})
}

func TestGuard_FailsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := newGuard(t)
		makePrivate(t, s, secretItem)
		require.True(t, visible(t, g, 9, openItem))
		s.fault = errors.New("away")
		require.True(t, visible(t, g, 9, openItem), "what is known is known")
		check := func() {
			t.Helper()
			for _, item := range []likes.Item{secretItem, openItem, noItem} {
				d, err := g.One(t.Context(), 9, item)
				require.ErrorIs(t, err, likes.ErrUnavailable)
				require.NotErrorIs(t, err, likes.ErrNotFound)
				require.Equal(t, visibility.Decision{}, d)
			}
			_, err := g.LookEach(t.Context(), []likes.UserID{1, 2}, []likes.Item{openItem, noItem})
			require.ErrorIs(t, err, likes.ErrUnavailable)
		}
		time.Sleep(time.Second)
		check() // of Restricts
		s.fault = nil
		require.False(t, visible(t, g, 9, secretItem))
		s.fault = errors.New("away")
		g.ForgetUsers(9)
		check() // of Facts
	})
}

// All pages and batches that there are go through, in pieces that the source takes.
func TestGuard_LargeBatches(t *testing.T) {
	g, s := newGuard(t, registered, func(c *visibility.Config) { c.MaxEntries = 10 })
	const n = 2*likes.MaxRead + 7
	items, viewers := make([]likes.Item, n), make([]likes.UserID, n)
	for i := range items {
		items[i], viewers[i] = likes.Item{Type: 1, ID: likes.ItemID(i + 1)}, likes.UserID(i%5+5)
		makePrivate(t, s, items[i])
	}
	one, err := g.Look(t.Context(), 7, items)
	require.NoError(t, err)
	each, err := g.LookEach(t.Context(), viewers, items)
	require.NoError(t, err)
	for i := range items {
		require.True(t, one[i].Visible)
		require.Equal(t, viewers[i] == 7, each[i].Visible, "%d", i)
	}
}

func TestGuard_LimitsOutOfRangeAreRefused(t *testing.T) {
	for _, cfg := range []visibility.Config{
		{},
		{Source: memory.New(), MaxEntries: 1},
		{Source: memory.New(), Cache: -time.Second, MaxEntries: 1},
		{Source: memory.New(), Cache: time.Second},
		{Source: memory.New(), Authorizer: new(visibility.Authorizer), Cache: time.Second, MaxEntries: 1},
	} {
		_, err := visibility.New(cfg)
		require.ErrorIs(t, err, likes.ErrInvalid)
	}
}

func TestGuard_NoneIsOpen(t *testing.T) {
	var g *visibility.Guard
	require.True(t, visible(t, g, 9, openItem))
	g.ForgetItem(openItem)
	g.ForgetUsers(1)
}

// What every like and count pays where there are no rows.
func BenchmarkGuard(b *testing.B) {
	g, s := newGuard(b, func(c *visibility.Config) { c.Cache = time.Hour })
	run := func(name string, one func()) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				one()
			}
		})
	}
	ask := func() {
		if d, err := g.One(b.Context(), 9, openItem); err != nil || !d.Visible {
			b.Fatal(d, err)
		}
	}
	require.True(b, visible(b, g, 9, openItem))
	run("open", ask)
	makePrivate(b, s, secretItem)
	g.ForgetItem(secretItem)
	run("remembered", ask)
}

func TestGuard_OpenCostsNothing(t *testing.T) {
	g, _ := newGuard(t, func(c *visibility.Config) { c.Cache = time.Hour })
	require.True(t, visible(t, g, 9, openItem))
	ctx := t.Context()
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = g.One(ctx, 9, openItem) }))
}
