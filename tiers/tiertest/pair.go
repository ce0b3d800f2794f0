package tiertest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"likectl/pkg/likes"
	"likectl/pkg/memory"
)

// pair runs programs on the cluster and the oracle side by side.
type pair struct {
	e      *env
	oracle likes.Service
	users  []likes.UserID
	items  []likes.Item
	events []likes.EventID
	// alone: nobody else writes to the items, so every answer is determined.
	alone bool
}

// newPair uses users and items that nothing has touched, so that programs can
// run one after the other on one cluster.
func newPair(e *env) *pair {
	p := &pair{e: e, oracle: memory.New(), users: e.users(metaUsers), alone: true}
	for range metaItems {
		p.items = append(p.items, e.item())
	}
	for range metaEvents {
		p.events = append(p.events, e.event())
	}
	return p
}

// run executes the program and then compares all there is.
func (p *pair) run(program []string) error {
	for n, line := range program {
		if err := p.line(line); err != nil {
			return fmt.Errorf("line %d, %q: %w", n+1, line, err)
		}
	}
	if !p.alone {
		return nil
	}
	return p.compare()
}

// exact reports whether reads are determined at every step.
func (p *pair) exact() bool {
	return p.alone && p.e.contract.CountStaleness == 0 && p.e.contract.EdgeStaleness == 0
}

func (p *pair) line(line string) error {
	instance, call, _ := strings.Cut(line, " ")
	n, err := strconv.Atoi(instance)
	if err != nil {
		return err
	}
	verb, arg, _ := strings.Cut(call, " ")
	read := func(ask func() error) error {
		if !p.exact() {
			return nil
		}
		return ask()
	}
	switch verb {
	case "settle":
		return p.settle()
	case "restart":
		s, err := p.e.Restart(p.e.Context(), n)
		if err == nil {
			p.e.Services[n] = s
		}
		return err
	case "counts":
		return read(func() error { return p.counts(n) })
	case "has":
		return read(func() error { return p.has(n, number(arg)) })
	case "likers":
		return read(func() error { return p.likers(n, number(arg)) })
	default:
		return p.apply(n, call)
	}
}

func (p *pair) settle() error {
	if p.e.Settle == nil {
		return nil
	}
	return p.e.Settle(p.e.Context())
}

// apply performs a line of mutations.
func (p *pair) apply(instance int, call string) error {
	var ms []likes.Mutation
	for text := range strings.SplitSeq(call, "; ") {
		m, err := p.mutation(text)
		if err != nil {
			return err
		}
		ms = append(ms, m)
	}
	got, want := p.e.Services[instance].Apply(p.e.Context(), ms), p.oracle.Apply(p.e.Context(), ms)
	if len(got) != len(ms) {
		return fmt.Errorf("%d results for %d mutations", len(got), len(ms))
	}
	for i := range ms {
		if got[i].Err != nil {
			return fmt.Errorf("mutation %d: %w", i+1, got[i].Err)
		}
		if p.outcomeKnown(ms, i) && got[i].Outcome != want[i].Outcome {
			return fmt.Errorf("mutation %d: outcome %v, the oracle has %v", i+1, got[i].Outcome, want[i].Outcome)
		}
	}
	if len(ms) == 1 && p.exact() && got[0].Count.N != want[0].Count.N {
		return fmt.Errorf("count %d in the answer, the oracle has %d", got[0].Count.N, want[0].Count.N)
	}
	return nil
}

// outcomeKnown reports whether the outcome is determined. That of a replay is
// not beside another one of its edge: a batch may take the newest of them only.
func (p *pair) outcomeKnown(ms []likes.Mutation, i int) bool {
	if !p.e.contract.ExactChanged {
		return false
	}
	for j, m := range ms {
		if j != i && m.Edge == ms[i].Edge && ms[i].Fixed != 0 && m.Fixed != 0 && m.Op != likes.Add {
			return false
		}
	}
	return true
}

// mutation parses "[replay ]like u1 i2[ @clock]" and "[replay ]view u1 i2 e3[ @clock]".
func (p *pair) mutation(text string) (likes.Mutation, error) {
	words := strings.Fields(strings.TrimPrefix(text, "replay "))
	if len(words) < 3 {
		return likes.Mutation{}, fmt.Errorf("%q is not a mutation", text)
	}
	m := likes.Mutation{Op: likes.Clear, Edge: likes.Edge{Counter: likes.Likes, Item: p.items[number(words[2])], User: p.users[number(words[1])]}}
	op, words := words[0], words[3:]
	switch op {
	case "like":
		m.Op = likes.Set
	case "view":
		m.Op, m.Edge.Counter, m.Event = likes.Add, likes.Views, p.events[number(words[0])]
		words = words[1:]
	}
	if len(words) > 0 && !p.e.Remote { // there every operation is issued
		clock, err := strconv.ParseInt(words[0][1:], 10, 64)
		if err != nil {
			return m, err
		}
		m.Fixed = likes.Clock(clock)
	}
	return m, nil
}

// number returns the index that a word such as u1 or i2 names.
func number(word string) int {
	n, err := strconv.Atoi(word[1:])
	if err != nil {
		return 0
	}
	return n - 1
}

// compare asks every instance for everything.
func (p *pair) compare() error {
	errs := []error{p.settle()}
	for n := range p.e.Services {
		for user := range p.users {
			errs = append(errs, p.has(n, user), p.likedBy(n, user))
		}
		if !p.alone {
			continue
		}
		errs = append(errs, p.counts(n))
		for item := range p.items {
			errs = append(errs, p.likers(n, item))
		}
	}
	return errors.Join(errs...)
}

func (p *pair) counts(instance int) error {
	for _, counter := range []likes.Counter{likes.Likes, likes.Views} {
		got := p.e.Services[instance].Counts(p.e.Context(), counter, p.items, nil)
		want := p.oracle.Counts(p.e.Context(), counter, p.items, nil)
		for i := range p.items {
			if err := differ(got[i].Err, got[i].N, want[i].N); err != nil {
				return fmt.Errorf("instance %d: %v of i%d: %w", instance, counter, i+1, err)
			}
		}
	}
	return nil
}

func (p *pair) has(instance, user int) error {
	got := p.e.Services[instance].Has(p.e.Context(), likes.Likes, p.users[user], p.items, nil)
	want := p.oracle.Has(p.e.Context(), likes.Likes, p.users[user], p.items, nil)
	for i := range p.items {
		if err := differ(got[i].Err, got[i].Liked, want[i].Liked); err != nil {
			return fmt.Errorf("instance %d: u%d likes i%d: %w", instance, user+1, i+1, err)
		}
	}
	return nil
}

func (p *pair) likers(instance, item int) error {
	got, err := walkLikers(p.e.Context(), p.e.Services[instance], p.items[item], 2)
	want, _ := walkLikers(p.e.Context(), p.oracle, p.items[item], likes.MaxPage)
	if err := differ(err, fmt.Sprint(got), fmt.Sprint(want)); err != nil {
		return fmt.Errorf("instance %d: likers of i%d: %w", instance, item+1, err)
	}
	return nil
}

func (p *pair) likedBy(instance, user int) error {
	ctx, u := p.e.Context(), p.users[user]
	got, _, err := p.e.Services[instance].LikedBy(ctx, likes.Likes, u, "", likes.MaxPage)
	want, _, _ := p.oracle.LikedBy(ctx, likes.Likes, u, "", likes.MaxPage)
	if err := differ(err, items(got), items(want)); err != nil {
		return fmt.Errorf("instance %d: what u%d likes: %w", instance, user+1, err)
	}
	return nil
}

func items(page []likes.Member) string {
	var all []likes.Item
	for _, m := range page {
		all = append(all, m.Edge.Item)
	}
	return fmt.Sprint(all)
}

// differ returns an error if a read failed or its answer is not the oracle's.
func differ[A comparable](err error, got, want A) error {
	switch {
	case err != nil:
		return err
	case got != want:
		return fmt.Errorf("%v, the oracle has %v", got, want)
	default:
		return nil
	}
}
