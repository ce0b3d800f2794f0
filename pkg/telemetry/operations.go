package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"likectl/pkg/likes"
)

// The outcomes of an operation.
const (
	changed = iota
	unchanged
	refused
	outcomes
)

// operations counts what users did, and what came of it. An array finds the
// counter of an operation without asking a map for its labels.
type operations struct {
	byKind [likes.Saves + 1][likes.Add + 1][outcomes]prometheus.Counter
}

func newOperations(r prometheus.Registerer) *operations {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "likectl_operations_total",
		Help: "Operations in committed transactions, by what they did: changed something, repeated what was so already, or were refused.",
	}, []string{"operation", "outcome"})
	r.MustRegister(vec)
	o := &operations{}
	for _, op := range []struct {
		name    string
		counter likes.Counter
		op      likes.Op
	}{
		{"like", likes.Likes, likes.Set},
		{"unlike", likes.Likes, likes.Clear},
		{"save", likes.Saves, likes.Set},
		{"unsave", likes.Saves, likes.Clear},
		{"view", likes.Views, likes.Add},
		{"share", likes.Shares, likes.Add},
	} {
		for outcome, name := range []string{"changed", "unchanged", "refused"} {
			o.byKind[op.counter][op.op][outcome] = vec.WithLabelValues(op.name, name)
		}
	}
	return o
}

// Answered records the mutations of a committed transaction and their results.
func (m *Metrics) Answered(ms []likes.Mutation, results []likes.Result) {
	var n [likes.Saves + 1][likes.Add + 1][outcomes]int
	for i := range ms {
		outcome := changed
		switch {
		case results[i].Err != nil:
			outcome = refused
		case results[i].Outcome != likes.Changed:
			outcome = unchanged
		}
		n[ms[i].Edge.Counter][ms[i].Op][outcome]++
	}
	for counter := range n {
		for op := range n[counter] {
			for outcome, n := range n[counter][op] {
				if n > 0 {
					m.operations.byKind[counter][op][outcome].Add(float64(n))
				}
			}
		}
	}
}
