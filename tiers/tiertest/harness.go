package tiertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

// Harness is how a tier plugs in.
type Harness struct {
	// Open returns a cluster of that many instances on empty stores; what it
	// opens it closes by tb.Cleanup.
	Open func(tb testing.TB, instances int) *Cluster
}

// Cluster is a tier in service: instances as separate processes would be, over
// one shared state. Functions that a tier has no use for are nil.
type Cluster struct {
	// Services are the instances, at least one.
	Services []likes.Service

	// Settle returns when every answer shows all that was acknowledged before:
	// the staleness has passed, the lag is zero. Nil: that is so at once.
	Settle func(ctx context.Context) error

	// Restart stops an instance as a deployment would and returns its
	// successor, which the suites use from then on. Nil for a tier whose
	// acknowledgement is memory.
	Restart func(ctx context.Context, instance int) (likes.Service, error)

	// Faults are the ways to take a backend away.
	Faults []Fault

	// Auditor finds and repairs drift, and Drift makes some: it adds n to the
	// stored counter, which must exist. Nil for a tier without stored counters.
	Auditor store.Auditor
	Drift   func(ctx context.Context, k store.Key, n int64) error

	// Remote: the services are clients of an API, which carries neither replays
	// nor clocks nor versions of counts, and tells when a like began in listings
	// only. The checks that are about those are skipped, each by its name; the
	// others do without.
	Remote bool

	next atomic.Int64
}

// Fault takes a backend away until it is ended.
type Fault struct {
	Name string
	// Start returns once the fault is in force; end returns once the backend
	// answers again.
	Start func(ctx context.Context) (end func(context.Context) error, err error)
}

// T is the part of [testing.TB] that the checks use, so that the tests of the
// suites can watch them fail.
type T interface {
	require.TestingT
	Helper()
	Context() context.Context
	Logf(format string, args ...any)
}

// env is what one check works with: users and items of its own on a cluster
// that it shares with the checks before it.
type env struct {
	T
	*Cluster
	contract likes.Contract
}

func newEnv(t T, c *Cluster) *env {
	return &env{T: t, Cluster: c, contract: c.Services[0].Contract()}
}

// any returns some instance.
func (e *env) any() likes.Service { return e.Services[rand.IntN(len(e.Services))] }

// item returns an item that nothing has touched.
func (e *env) item() likes.Item {
	return likes.Item{Type: 1, ID: likes.ItemID(1_000_000 + e.next.Add(1))}
}

// users returns users that have done nothing, by ascending id.
func (e *env) users(n int) []likes.UserID {
	last := e.next.Add(int64(n))
	us := make([]likes.UserID, n)
	for i := range us {
		us[i] = likes.UserID(last - int64(n) + 1 + int64(i))
	}
	return us
}

func (e *env) user() likes.UserID { return e.users(1)[0] }

// edge returns an edge that nothing has touched.
func (e *env) edge() likes.Edge {
	return likes.Edge{Counter: likes.Likes, Item: e.item(), User: e.user()}
}

// settle waits until all instances show everything acknowledged so far.
func (e *env) settle() {
	e.Helper()
	if e.Settle != nil {
		require.NoError(e, e.Settle(e.Context()))
	}
}

// do applies one mutation and requires that it succeeds.
func (e *env) do(s likes.Service, m likes.Mutation) likes.Result {
	e.Helper()
	r := apply1(e.Context(), s, m)
	require.NoError(e, r.Err, "%v %v", m.Op, m.Edge)
	return r
}

func (e *env) like(g likes.Edge) likes.Result   { e.Helper(); return e.do(e.any(), set(g)) }
func (e *env) unlike(g likes.Edge) likes.Result { e.Helper(); return e.do(e.any(), clr(g)) }

// bulk applies many mutations in calls of the maximum size.
func (e *env) bulk(ms []likes.Mutation) []likes.Result {
	e.Helper()
	var all []likes.Result
	for from := 0; from < len(ms); from += likes.MaxApply {
		rs := e.any().Apply(e.Context(), ms[from:min(from+likes.MaxApply, len(ms))])
		for i, r := range rs {
			require.NoError(e, r.Err, "%v", ms[from+i].Edge)
		}
		all = append(all, rs...)
	}
	return all
}

// count reads a settled count from some instance.
func (e *env) count(item likes.Item) likes.Count {
	e.Helper()
	return e.countOf(likes.Likes, item)
}

func (e *env) countOf(c likes.Counter, item likes.Item) likes.Count {
	e.Helper()
	got := e.any().Counts(e.Context(), c, []likes.Item{item}, nil)
	require.Len(e, got, 1)
	require.NoError(e, got[0].Err)
	return got[0]
}

// has reads one edge from some instance.
func (e *env) has(g likes.Edge) likes.Membership {
	e.Helper()
	got := e.any().Has(e.Context(), g.Counter, g.User, []likes.Item{g.Item}, nil)
	require.Len(e, got, 1)
	require.NoError(e, got[0].Err)
	return got[0]
}

// likers walks all pages of an item's likers.
func (e *env) likers(item likes.Item, limit int) []likes.UserID {
	e.Helper()
	users, err := walkLikers(e.Context(), e.any(), item, limit)
	require.NoError(e, err)
	return users
}

// exact requires that all instances and all views of an item agree on its
// likers: the count, the listing and the memberships.
func (e *env) exact(item likes.Item, liked []likes.UserID, others ...likes.UserID) {
	e.Helper()
	e.settle()
	require.Equal(e, int64(len(liked)), e.count(item).N, "count of %v", item)
	listed := e.likers(item, 100)
	require.ElementsMatch(e, liked, listed, "likers of %v", item)
	for _, u := range liked {
		require.True(e, e.has(likes.Edge{Counter: likes.Likes, Item: item, User: u}).Liked, "user %d", u)
	}
	for _, u := range others {
		require.False(e, e.has(likes.Edge{Counter: likes.Likes, Item: item, User: u}).Liked, "user %d", u)
	}
}

// parallel runs n calls at the same time and requires that all succeed.
func (e *env) parallel(n int, call func(i int) error) {
	e.Helper()
	errs := make(chan error, n)
	start := make(chan struct{})
	for i := range n {
		go func() { <-start; errs <- call(i) }()
	}
	close(start)
	for range n {
		require.NoError(e, <-errs)
	}
}

func set(g likes.Edge) likes.Mutation { return likes.Mutation{Op: likes.Set, Edge: g} }
func clr(g likes.Edge) likes.Mutation { return likes.Mutation{Op: likes.Clear, Edge: g} }

func replay(op likes.Op, g likes.Edge, c likes.Clock) likes.Mutation {
	return likes.Mutation{Op: op, Edge: g, Fixed: c}
}

func edges(item likes.Item, users ...likes.UserID) []likes.Edge {
	gs := make([]likes.Edge, len(users))
	for i, u := range users {
		gs[i] = likes.Edge{Counter: likes.Likes, Item: item, User: u}
	}
	return gs
}

func mutations(of func(likes.Edge) likes.Mutation, gs ...likes.Edge) []likes.Mutation {
	ms := make([]likes.Mutation, len(gs))
	for i, g := range gs {
		ms[i] = of(g)
	}
	return ms
}

func apply1(ctx context.Context, s likes.Service, m likes.Mutation) likes.Result {
	rs := s.Apply(ctx, []likes.Mutation{m})
	if len(rs) != 1 {
		return likes.Result{Err: fmt.Errorf("%d results for one mutation", len(rs))}
	}
	return rs[0]
}

// maxPages bounds a walk that would never end.
const maxPages = 100_000

func walkLikers(ctx context.Context, s likes.Service, item likes.Item, limit int) ([]likes.UserID, error) {
	var all []likes.UserID
	var cur likes.Cursor
	for range maxPages {
		page, next, err := s.Likers(ctx, likes.Likes, item, cur, limit)
		if err != nil {
			return all, err
		}
		if len(page) > limit {
			return all, fmt.Errorf("a page of %d members, limit %d", len(page), limit)
		}
		for _, m := range page {
			if m.Edge.Item != item || m.Edge.Counter != likes.Likes {
				return all, fmt.Errorf("%v among the likers of %v", m.Edge, item)
			}
			all = append(all, m.Edge.User)
		}
		if next == "" {
			return all, nil
		}
		cur = next
	}
	return all, fmt.Errorf("no end after %d pages", maxPages)
}

// patience is how long a condition that must come true may take.
const patience = 30 * time.Second
