package tiertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/memory"
)

// The suites are tested by planting the bugs that they are for, one at a time,
// as decorators over the oracle. A suite that lets one pass cannot be trusted
// with a tier.

// watched is a T that remembers failing instead of failing the test.
type watched struct {
	testing.TB
	mu  sync.Mutex
	log []string
}

func (w *watched) Errorf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

func (w *watched) FailNow() { runtime.Goexit() }

// failures runs every check and every randomised suite on the service and
// returns the names of those that fail.
func failures(t *testing.T, s likes.Service) []string {
	t.Helper()
	c := &Cluster{Services: []likes.Service{s, s, s}}
	var failed []string
	run := func(name string, body func(*env)) {
		w := &watched{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			body(newEnv(w, c))
		}()
		<-done
		if len(w.log) > 0 {
			failed = append(failed, name)
		}
	}
	for _, k := range checks() {
		if k.needs == nil {
			run(k.name, k.run)
		}
	}
	for _, k := range serviceCases() {
		if k.needs == nil {
			run(fmt.Sprintf("case %d", k.number), k.run)
		}
	}
	seed := Seed()
	run("metamorphic", func(e *env) { require.NoError(e, metamorphic(e, seed, 400)) })
	run("concurrent", func(e *env) { require.NoError(e, concurrent(e, seed, 1500)) })
	return failed
}

func TestTheOraclePasses(t *testing.T) {
	require.Empty(t, failures(t, memory.New()))
}

// bug is a service whose methods are the oracle's unless replaced.
type bug struct {
	likes.Service
	apply  func(ctx context.Context, ms []likes.Mutation) []likes.Result
	counts func(ctx context.Context, c likes.Counter, items []likes.Item, seen []likes.Version) []likes.Count
	has    func(ctx context.Context, c likes.Counter, u likes.UserID, items []likes.Item, seen []likes.Version) []likes.Membership
	likers func(ctx context.Context, c likes.Counter, item likes.Item, cur likes.Cursor, limit int) ([]likes.Member, likes.Cursor, error)
}

func (b *bug) Apply(ctx context.Context, ms []likes.Mutation) []likes.Result {
	if b.apply != nil {
		return b.apply(ctx, ms)
	}
	return b.Service.Apply(ctx, ms)
}

func (b *bug) Counts(ctx context.Context, c likes.Counter, items []likes.Item, seen []likes.Version) []likes.Count {
	if b.counts != nil {
		return b.counts(ctx, c, items, seen)
	}
	return b.Service.Counts(ctx, c, items, seen)
}

func (b *bug) Has(ctx context.Context, c likes.Counter, u likes.UserID, items []likes.Item, seen []likes.Version) []likes.Membership {
	if b.has != nil {
		return b.has(ctx, c, u, items, seen)
	}
	return b.Service.Has(ctx, c, u, items, seen)
}

func (b *bug) Likers(ctx context.Context, c likes.Counter, item likes.Item, cur likes.Cursor, limit int) ([]likes.Member, likes.Cursor, error) {
	if b.likers != nil {
		return b.likers(ctx, c, item, cur, limit)
	}
	return b.Service.Likers(ctx, c, item, cur, limit)
}

// tally adds to the oracle's counts by item.
type tally struct {
	mu sync.Mutex
	by map[likes.Item]int64
}

func (t *tally) add(item likes.Item, n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.by[item] += n
}

func (t *tally) over(s likes.Service) func(context.Context, likes.Counter, []likes.Item, []likes.Version) []likes.Count {
	return func(ctx context.Context, c likes.Counter, items []likes.Item, seen []likes.Version) []likes.Count {
		out := s.Counts(ctx, c, items, seen)
		t.mu.Lock()
		defer t.mu.Unlock()
		for i := range out {
			if out[i].Err == nil {
				out[i].N += t.by[items[i]]
			}
		}
		return out
	}
}

// planted are the bugs: each takes an oracle and breaks it.
func planted() map[string]func(likes.Service) *bug {
	onApply := func(extra func(m likes.Mutation, r likes.Result) int64) func(likes.Service) *bug {
		return func(s likes.Service) *bug {
			t := &tally{by: map[likes.Item]int64{}}
			return &bug{Service: s, counts: t.over(s), apply: func(ctx context.Context, ms []likes.Mutation) []likes.Result {
				rs := s.Apply(ctx, ms)
				for i, r := range rs {
					if r.Err == nil {
						t.add(ms[i].Edge.Item, extra(ms[i], r))
					}
				}
				return rs
			}}
		}
	}
	some := sometimes()
	return map[string]func(likes.Service) *bug{
		"every like counts, repeats too": onApply(func(m likes.Mutation, r likes.Result) int64 {
			return toInt(m.Op == likes.Set && r.Outcome == likes.Unchanged)
		}),
		"every unlike counts, negative if nobody liked": onApply(func(m likes.Mutation, r likes.Result) int64 {
			return -toInt(m.Op == likes.Clear && r.Outcome == likes.Unchanged)
		}),
		"a lost increment now and then": onApply(func(_ likes.Mutation, r likes.Result) int64 {
			return -toInt(r.Outcome == likes.Changed && some(50))
		}),
		"a superseded replay counts": onApply(func(m likes.Mutation, r likes.Result) int64 {
			return toInt(m.Op == likes.Set && r.Outcome == likes.Superseded)
		}),
		"a token's state is not there at the first question": func(s likes.Service) *bug {
			var mu sync.Mutex
			asked := map[likes.Edge]bool{}
			return &bug{Service: s, counts: func(ctx context.Context, c likes.Counter, items []likes.Item, seen []likes.Version) []likes.Count {
				out := s.Counts(ctx, c, items, seen)
				mu.Lock()
				defer mu.Unlock()
				for i, item := range items {
					for _, v := range seen {
						if v.Edge.Item == item && v.Clock < likes.MaxClock && !asked[v.Edge] {
							asked[v.Edge] = true
							out[i] = likes.Count{Err: likes.ErrNotYet}
						}
					}
				}
				return out
			}}
		},
		"a no-op is not recorded": func(s likes.Service) *bug {
			return mutate(s, func(ctx context.Context, m likes.Mutation) likes.Result {
				if m.Op == likes.Add {
					return s.Apply(ctx, []likes.Mutation{m})[0]
				}
				now := s.Has(ctx, m.Edge.Counter, m.Edge.User, []likes.Item{m.Edge.Item}, nil)[0]
				if m.Fixed == 0 && now.Err == nil && now.Liked == (m.Op == likes.Set) {
					r := likes.Result{Outcome: likes.Unchanged, Version: likes.Version{Edge: m.Edge, Epoch: 1, Clock: max(now.Clock, 1)}}
					r.Count = s.Counts(ctx, m.Edge.Counter, []likes.Item{m.Edge.Item}, nil)[0]
					return r
				}
				return s.Apply(ctx, []likes.Mutation{m})[0]
			})
		},
		"an unlike is answered and dropped": func(s likes.Service) *bug {
			return mutate(s, func(ctx context.Context, m likes.Mutation) likes.Result {
				if m.Op == likes.Clear && m.Validate() == nil && some(30) {
					return likes.Result{Outcome: likes.Changed, Version: likes.Version{Edge: m.Edge, Epoch: 1, Clock: 1}}
				}
				return s.Apply(ctx, []likes.Mutation{m})[0]
			})
		},
		"acknowledged first, written later": func(s likes.Service) *bug {
			behind := make(chan struct{}, 64)
			return mutate(s, func(ctx context.Context, m likes.Mutation) likes.Result {
				if m.Validate() != nil || m.Fixed != 0 {
					return s.Apply(ctx, []likes.Mutation{m})[0]
				}
				behind <- struct{}{}
				time.AfterFunc(200*time.Microsecond, func() {
					s.Apply(context.WithoutCancel(ctx), []likes.Mutation{m})
					<-behind
				})
				return likes.Result{Outcome: likes.Changed, Version: likes.Version{Edge: m.Edge, Epoch: 1, Clock: 1}}
			})
		},
		"an issued operation loses against a greater clock": func(s likes.Service) *bug {
			return mutate(s, func(ctx context.Context, m likes.Mutation) likes.Result {
				if m.Fixed == 0 && m.Op != likes.Add && m.Validate() == nil {
					count := func() likes.Count { return s.Counts(ctx, m.Edge.Counter, []likes.Item{m.Edge.Item}, nil)[0] }
					m.Fixed = max(likes.ClockAt(time.Now(), 0), m.After.Next())
					r := s.Apply(ctx, []likes.Mutation{m})[0]
					r.Count = count()
					return r
				}
				return s.Apply(ctx, []likes.Mutation{m})[0]
			})
		},
		"a view is added without its key": func(s likes.Service) *bug {
			return mutate(s, func(ctx context.Context, m likes.Mutation) likes.Result {
				if m.Op == likes.Add && m.Validate() == nil {
					m.Event = likes.NewEventID(time.Now()) // an increment, whatever came before
				}
				return s.Apply(ctx, []likes.Mutation{m})[0]
			})
		},
		"an event is looked up before it is added": func(s likes.Service) *bug {
			var mu sync.Mutex
			known := map[likes.Mutation]bool{}
			return mutate(s, func(ctx context.Context, m likes.Mutation) likes.Result {
				if m.Op != likes.Add || m.Validate() != nil {
					return s.Apply(ctx, []likes.Mutation{m})[0]
				}
				key := likes.Mutation{Edge: likes.Edge{Counter: m.Edge.Counter, Item: m.Edge.Item}, Event: m.Event}
				mu.Lock()
				seen := known[key]
				mu.Unlock()
				runtime.Gosched() // another instance looks as well
				if !seen {
					m.Event = likes.NewEventID(time.Now())
				}
				r := s.Apply(ctx, []likes.Mutation{m})[0]
				mu.Lock()
				defer mu.Unlock()
				known[key] = true
				return r
			})
		},
		"an event counts for one item only": func(s likes.Service) *bug {
			var mu sync.Mutex
			first := map[likes.EventID]likes.Edge{}
			return mutate(s, func(ctx context.Context, m likes.Mutation) likes.Result {
				if m.Op == likes.Add && m.Validate() == nil {
					mu.Lock()
					defer mu.Unlock()
					if of, ok := first[m.Event]; ok {
						m.Edge = of
					}
					first[m.Event] = m.Edge
				}
				return s.Apply(ctx, []likes.Mutation{m})[0]
			})
		},
		"a replayed add is compared by its clock": func(s likes.Service) *bug {
			return mutate(s, func(ctx context.Context, m likes.Mutation) likes.Result {
				if m.Op == likes.Add && m.Fixed != 0 {
					m.Event[15] ^= byte(m.Fixed >> 12)
				}
				return s.Apply(ctx, []likes.Mutation{m})[0]
			})
		},
		"everybody changed it": func(s likes.Service) *bug {
			return mutate(s, func(ctx context.Context, m likes.Mutation) likes.Result {
				r := s.Apply(ctx, []likes.Mutation{m})[0]
				if r.Outcome == likes.Unchanged && some(2) {
					r.Outcome = likes.Changed
				}
				return r
			})
		},
		"a false no": func(s likes.Service) *bug {
			return &bug{Service: s, has: func(ctx context.Context, c likes.Counter, u likes.UserID, items []likes.Item, seen []likes.Version) []likes.Membership {
				ms := s.Has(ctx, c, u, items, seen)
				if len(ms) > 0 && ms[0].Liked && some(100) {
					ms[0] = likes.Membership{Clock: ms[0].Clock}
				}
				return ms
			}}
		},
		"a failed count is 0": func(s likes.Service) *bug {
			return &bug{Service: s, counts: func(ctx context.Context, c likes.Counter, items []likes.Item, seen []likes.Version) []likes.Count {
				cs := s.Counts(ctx, c, items, seen)
				for i := range cs {
					if cs[i].Err != nil || some(400) {
						cs[i] = likes.Count{}
					}
				}
				return cs
			}}
		},
		"a stale count for ever": func(s likes.Service) *bug {
			var mu sync.Mutex
			first := map[likes.Item]likes.Count{}
			return &bug{Service: s, counts: func(ctx context.Context, c likes.Counter, items []likes.Item, seen []likes.Version) []likes.Count {
				cs := s.Counts(ctx, c, items, seen)
				mu.Lock()
				defer mu.Unlock()
				for i, item := range items {
					if f, ok := first[item]; ok && i < len(cs) && cs[i].Err == nil {
						cs[i] = f
					} else if cs[i].Err == nil {
						first[item] = cs[i]
					}
				}
				return cs
			}}
		},
		"likers repeat somebody across pages": func(s likes.Service) *bug {
			return &bug{Service: s, likers: func(ctx context.Context, c likes.Counter, item likes.Item, cur likes.Cursor, limit int) ([]likes.Member, likes.Cursor, error) {
				page, next, err := s.Likers(ctx, c, item, cur, limit)
				if next != "" && len(page) > 1 {
					_, next, err = s.Likers(ctx, c, item, cur, limit-1)
				}
				return page, next, err
			}}
		},
		"likers by offset": func(s likes.Service) *bug {
			return &bug{Service: s, likers: offsetPages(s)}
		},
		"answers sorted instead of by position": func(s likes.Service) *bug {
			return &bug{Service: s, counts: func(ctx context.Context, c likes.Counter, items []likes.Item, seen []likes.Version) []likes.Count {
				sorted := slices.Clone(items)
				slices.SortFunc(sorted, func(a, b likes.Item) int { return int(a.ID - b.ID) })
				return s.Counts(ctx, c, sorted, seen)
			}}
		},
		"saves and likes share a counter": func(s likes.Service) *bug {
			return mutate(s, func(ctx context.Context, m likes.Mutation) likes.Result {
				if m.Edge.Counter == likes.Saves {
					m.Edge.Counter = likes.Likes
				}
				return s.Apply(ctx, []likes.Mutation{m})[0]
			})
		},
	}
}

// mutate replaces Apply by a function of one mutation.
func mutate(s likes.Service, one func(context.Context, likes.Mutation) likes.Result) *bug {
	return &bug{Service: s, apply: func(ctx context.Context, ms []likes.Mutation) []likes.Result {
		if likes.CheckApply(len(ms)) != nil {
			return s.Apply(ctx, ms)
		}
		out := make([]likes.Result, len(ms))
		for i, m := range ms {
			out[i] = one(ctx, m)
		}
		return out
	}}
}

// offsetPages walks by position: whoever is liked or unliked meanwhile shifts
// the rest.
func offsetPages(s likes.Service) func(context.Context, likes.Counter, likes.Item, likes.Cursor, int) ([]likes.Member, likes.Cursor, error) {
	return func(ctx context.Context, c likes.Counter, item likes.Item, cur likes.Cursor, limit int) ([]likes.Member, likes.Cursor, error) {
		if err := likes.CheckPage(c, limit); err != nil {
			return nil, "", err
		}
		from := 0
		if _, err := fmt.Sscanf(string(cur), fmt.Sprintf("%v/%v/%%d", c, item.ID), &from); cur != "" && err != nil {
			return nil, "", likes.ErrInvalid
		}
		var all []likes.Member
		for next := likes.Cursor(""); ; {
			page, n, err := s.Likers(ctx, c, item, next, likes.MaxPage)
			if err != nil {
				return nil, "", err
			}
			if all, next = append(all, page...), n; n == "" {
				break
			}
		}
		to := min(from+limit, len(all))
		from = min(from, to)
		if to == len(all) {
			return all[from:to], "", nil
		}
		return all[from:to], likes.Cursor(fmt.Sprintf("%v/%v/%d", c, item.ID, to)), nil
	}
}

// sometimes returns a function that is true once in n calls.
func sometimes() func(n int) bool {
	var mu sync.Mutex
	calls := map[int]int{}
	return func(n int) bool {
		mu.Lock()
		defer mu.Unlock()
		calls[n]++
		return calls[n]%n == 0
	}
}

func toInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func TestPlantedBugsAreCaught(t *testing.T) {
	for name, plant := range planted() {
		t.Run(name, func(t *testing.T) {
			failed := failures(t, plant(memory.New()))
			require.NotEmpty(t, failed, "no check notices")
			t.Logf("caught by %d: %v", len(failed), failed)
		})
	}
}

// TestReducing shows a failing program shrunk to the lines that matter.
func TestReducing(t *testing.T) {
	s := planted()["every like counts, repeats too"](memory.New())
	e := newEnv(t, &Cluster{Services: []likes.Service{s}})
	err := metamorphic(e, 7, 400)
	require.ErrorContains(t, err, "with fewer operations")
	t.Log(err)
	program := generate(rand.New(rand.NewPCG(7, 1)), 400, 1, false)
	program = reduce(program, func(p []string) bool { return newPair(e).run(p) != nil })
	require.LessOrEqual(t, len(program), 4, "%q", program)
}
