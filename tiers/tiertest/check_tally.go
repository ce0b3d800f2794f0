package tiertest

import (
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

// tallyChecks are about sums of events.
func tallyChecks() []check {
	return []check{
		{name: "an event counts once for its tally and item, however often and from whom it is added", run: checkEventOnce},
		{name: "an event counts once as whatever kind it is added, issued or replayed", run: checkEventReplay, local: true},
		{name: "of equal events, concurrent ones included, exactly one is Changed", run: checkEventConcurrent},
		{name: "adds of one call each have the count just after them", run: checkEventCounts},
		{name: "a call may mix adds, operations and replays", run: checkMixedCall, local: true},
		{name: "tallies have counts, and those who ask for their edges get ErrInvalid", run: checkNoEdges},
		{name: "a client that carries an add's version reads its own write on every instance", run: checkEventVersion},
		{name: "an add is durable when it has no error, and so is that it was counted", run: checkEventDurable, needs: func(e *env) bool { return e.Restart != nil }},
		{name: "no audit and no repair recounts a tally from edges", run: checkNoRecount, needs: needsAuditor},
		{name: "repeating an add whose outcome is uncertain counts it once", run: checkEventFault, needs: func(e *env) bool { return len(e.Faults) > 0 }},
	}
}

// event returns an event that nothing has touched.
func (e *env) event() likes.EventID { return likes.NewEventID(time.Now()) }

// view is an Add by nobody.
func view(item likes.Item, event likes.EventID) likes.Mutation {
	return likes.Mutation{Op: likes.Add, Edge: likes.Edge{Counter: likes.Views, Item: item}, Event: event}
}

func (e *env) views(item likes.Item) int64 {
	e.Helper()
	e.settle()
	return e.countOf(likes.Views, item).N
}

func checkEventOnce(e *env) {
	item, other, first := e.item(), e.item(), e.event()
	e.changed(true, e.do(e.any(), view(item, first)))
	for _, s := range e.Services {
		e.settle()
		again := view(item, first)
		again.Edge.User = e.user()
		e.changed(false, e.do(s, again))
	}
	require.Equal(e, int64(1), e.views(item))
	share := view(item, first)
	share.Edge.Counter = likes.Shares
	e.changed(true, e.do(e.any(), view(other, first)))
	e.changed(true, e.do(e.any(), share))
	e.changed(true, e.do(e.any(), view(item, e.event())))
	require.Equal(e, int64(2), e.views(item))
	require.Equal(e, int64(1), e.views(other))
	require.Equal(e, int64(1), e.countOf(likes.Shares, item).N)
	require.Zero(e, e.count(item).N, "a view is not a like")
}

func checkEventReplay(e *env) {
	item := e.item()
	for n, kinds := range [][]likes.Clock{{0, past(1)}, {past(1), 0}, {past(2), past(1), past(2)}, {past(1), past(2)}} {
		event := e.event()
		for i, clock := range kinds {
			m := view(item, event)
			m.Fixed = clock
			r := e.do(e.any(), m)
			e.changed(i == 0, r)
			if clock != 0 {
				require.Equal(e, likes.Count{}, r.Count, "replays carry no count")
			}
			e.settle()
		}
		require.Equal(e, int64(n+1), e.views(item))
	}
}

func checkEventConcurrent(e *env) {
	const copies, events = 40, 8
	item := e.item()
	var fresh [events]likes.EventID
	var changed [events]atomic.Int64
	for i := range fresh {
		fresh[i] = e.event()
	}
	e.parallel(copies, func(i int) error {
		var ms []likes.Mutation
		for n := range events { // in different orders, each twice
			ms = append(ms, view(item, fresh[(n*(2*i+1)+i)%events]), view(item, fresh[n]))
		}
		for n, r := range e.Services[i%len(e.Services)].Apply(e.Context(), ms) {
			if r.Err != nil {
				return r.Err
			}
			for at := range fresh {
				if ms[n].Event == fresh[at] && r.Outcome == likes.Changed {
					changed[at].Add(1)
				}
			}
		}
		return nil
	})
	for at := range fresh {
		if e.contract.ExactChanged {
			require.Equal(e, int64(1), changed[at].Load(), "event %d", at)
		}
	}
	require.Equal(e, int64(events), e.views(item))
}

func checkEventCounts(e *env) {
	item, a, b := e.item(), e.event(), e.event()
	rs := e.any().Apply(e.Context(), []likes.Mutation{view(item, a), view(item, a), view(item, b), view(item, a)})
	for i, want := range []int64{1, 1, 2, 2} {
		require.NoError(e, rs[i].Err)
		require.Equal(e, want, rs[i].Count.N, "add %d", i)
		require.Equal(e, item, rs[i].Version.Edge.Item)
	}
	e.settle()
	last := e.do(e.any(), view(item, b))
	require.Equal(e, int64(2), last.Count.N)
	require.Equal(e, int64(3), e.do(e.any(), view(item, e.event())).Count.N)
	if e.contract.CountStaleness == 0 && !e.Remote {
		require.Greater(e, e.countOf(likes.Views, item).Version.N, last.Count.Version.N, "the version grows with every change")
	}
}

func checkMixedCall(e *env) {
	g, event := e.edge(), e.event()
	rs := e.any().Apply(e.Context(), []likes.Mutation{
		view(g.Item, event), replay(likes.Set, g, past(1)), set(g), {Op: likes.Add, Edge: g}, view(g.Item, event), clr(g), view(g.Item, e.event()),
	})
	require.ErrorIs(e, rs[3].Err, likes.ErrInvalid)
	require.Equal(e, likes.Result{Err: rs[3].Err}, rs[3], "if Err is set nothing else is")
	for i, changed := range map[int]bool{0: true, 2: false, 4: false, 5: true, 6: true} {
		e.changed(changed, rs[i])
	}
	e.settle()
	require.False(e, e.has(g).Liked)
	require.Equal(e, int64(2), e.views(g.Item))
}

func checkNoEdges(e *env) {
	item, user := e.item(), e.user()
	m := view(item, e.event())
	m.Edge.User = user
	e.do(e.any(), m)
	for _, s := range e.Services {
		ctx := e.Context()
		for _, tally := range []likes.Counter{likes.Views, likes.Shares} {
			require.NoError(e, s.Counts(ctx, tally, []likes.Item{item}, nil)[0].Err)
			require.ErrorIs(e, s.Has(ctx, tally, user, []likes.Item{item}, nil)[0].Err, likes.ErrInvalid)
			_, _, err := s.Likers(ctx, tally, item, "", 10)
			require.ErrorIs(e, err, likes.ErrInvalid)
			_, _, err = s.LikedBy(ctx, tally, user, "", 10)
			require.ErrorIs(e, err, likes.ErrInvalid)
		}
	}
	require.Equal(e, int64(1), e.views(item))
	require.Empty(e, e.likers(item, 10))
}

func checkEventVersion(e *env) {
	if !e.contract.ReadYourWrites {
		return
	}
	item := e.item()
	for n := range 12 {
		r := e.do(e.Services[n%len(e.Services)], view(item, e.event()))
		for _, s := range e.Services {
			c := retryNotYet(e, func() (likes.Count, error) {
				c := s.Counts(e.Context(), likes.Views, []likes.Item{item}, []likes.Version{r.Version})[0]
				return c, c.Err
			})
			require.Equal(e, int64(n+1), c.N)
		}
	}
}

func checkEventDurable(e *env) {
	const n = 300
	item := e.item()
	ms := make([]likes.Mutation, n)
	for i := range ms {
		ms[i] = view(item, e.event())
	}
	e.bulk(ms)
	for i := range e.Services {
		s, err := e.Restart(e.Context(), i)
		require.NoError(e, err)
		e.Services[i] = s
	}
	require.Equal(e, int64(n), e.views(item))
	for _, r := range e.bulk(ms) {
		e.changed(false, r)
	}
	require.Equal(e, int64(n), e.views(item))
}

func checkNoRecount(e *env) {
	const off = 1000
	item := e.item()
	e.do(e.any(), view(item, e.event()))
	e.settle()
	key := store.Key{Counter: likes.Views, Item: item}
	require.NoError(e, e.Drift(e.Context(), key, off))
	requireNoDrift(e)
	_, err := e.Auditor.AuditItem(e.Context(), []store.Key{key})
	require.ErrorIs(e, err, likes.ErrInvalid)
	_, err = e.Auditor.Repair(e.Context(), key)
	require.ErrorIs(e, err, likes.ErrInvalid)
	require.Equal(e, int64(off+1), e.views(item))
}

// checkEventFault adds while a backend is away, and again once it is back.
func checkEventFault(e *env) {
	const adds = 40
	for _, f := range e.Faults {
		item := e.item()
		ms := make([]likes.Mutation, adds)
		for i := range ms {
			ms[i] = view(item, e.event())
		}
		e.under(f, func() {
			e.parallel(adds, func(i int) error {
				apply1(e.Context(), e.Services[i%len(e.Services)], ms[i]) // whatever comes of it
				return nil
			})
		})
		for range 2 {
			e.bulk(ms)
			require.Equal(e, int64(adds), e.views(item), f.Name)
		}
	}
}
