package tiertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"likectl/pkg/likes"
)

// CheckEdges returns an error unless every edge is a linearisable register that
// begins as not liked: each certain write takes effect once between its call and
// its return, each uncertain one at most once, and memberships and exact
// outcomes show the state of their instant. The last acknowledged operation thus
// wins, since the reads after it must show it.
//
// Staleness widens the reads: a membership may be from up to that much before
// its call.
func CheckEdges(events []Event, staleness time.Duration) error {
	var errs []error
	for g, es := range byEdge(events) {
		ops := make([]porcupine.Operation, len(es))
		for i, e := range es {
			ops[i] = porcupine.Operation{ClientId: e.Client, Input: e, Call: e.Call, Return: e.Return}
			if e.Kind == KindHas {
				ops[i].Call -= int64(staleness)
			}
		}
		// An edge has few operations at once; a minute is for those that fail.
		switch porcupine.CheckOperationsTimeout(registerModel(), ops, time.Minute) {
		case porcupine.Ok:
		case porcupine.Illegal:
			errs = append(errs, fmt.Errorf("%v is not linearisable:\n%s", g, describe(es)))
		case porcupine.Unknown:
			errs = append(errs, fmt.Errorf("%v: not decided within a minute over %d operations", g, len(es)))
		}
	}
	return errors.Join(errs...)
}

// registerModel is the state of one edge: liked or not.
func registerModel() porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{false} },
		Step: func(state, input, _ any) []any {
			liked, _ := state.(bool)
			e, _ := input.(Event)
			next := e.Kind == KindLike
			switch {
			case e.Kind == KindHas && e.Liked != liked:
				return nil
			case e.Kind == KindHas:
				return []any{liked}
			case e.Uncertain && next != liked:
				return []any{liked, next}
			case e.Exact && e.Changed != (next != liked):
				return nil
			default:
				return []any{next}
			}
		},
	}
	return model.ToModel()
}

// describe shows the end of an edge's history, where the contradiction mostly is.
func describe(es []Event) string {
	const shown = 40
	es = slices.Clone(es)
	slices.SortFunc(es, func(a, b Event) int { return int(max(min(a.Call-b.Call, 1), -1)) })
	var b strings.Builder
	if len(es) > shown {
		fmt.Fprintf(&b, "  … %d before\n", len(es)-shown)
		es = es[len(es)-shown:]
	}
	for _, e := range es {
		end := time.Duration(e.Return).String()
		if e.Return == open {
			end = "open"
		}
		fmt.Fprintf(&b, "  %v to %s client %d %s", time.Duration(e.Call), end, e.Client, e.Kind)
		switch {
		case e.Uncertain:
			b.WriteString(" uncertain")
		case e.Kind == KindHas:
			fmt.Fprintf(&b, " = %v", e.Liked)
		case e.Exact:
			fmt.Fprintf(&b, " changed %v", e.Changed)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// CheckLast returns the edges whose state does not fit what their only writer was
// answered: the last acknowledged operation, or an uncertain one after it. Edges
// with several writers are left to [CheckEdges].
func CheckLast(events []Event, state map[likes.Edge]bool) map[likes.Edge]error {
	lost := map[likes.Edge]error{}
	for g, es := range byEdge(events) {
		es = slices.DeleteFunc(es, func(e Event) bool { return !e.write() })
		if len(es) == 0 || slices.ContainsFunc(es, func(e Event) bool { return e.Client != es[0].Client }) {
			continue
		}
		possible := map[bool]bool{false: true}
		for _, e := range es {
			if !e.Uncertain {
				possible = map[bool]bool{}
			}
			possible[e.Kind == KindLike] = true
		}
		if liked, ok := state[g]; ok && !possible[liked] {
			lost[g] = fmt.Errorf("an acknowledged operation on %v is lost: liked is %v after\n%s", g, liked, describe(es))
		}
	}
	return lost
}
