// Package workload says what users of a like service do: which items and users
// requests are about, what they ask, and what their answers must look like. It makes
// the requests of [likectl/benchmarks/load] for likectl's API.
//
// The default is that of the design documents: a thousandth of the items takes half
// of the traffic, reads outnumber writes 100 to 1 and come for pages of 50 items, of
// the writes a tenth takes a like back and a twentieth repeats one, and four items
// of five are never liked.
package workload

import (
	"fmt"
	"slices"
	"strings"

	"likectl/benchmarks/load"
)

// The kinds of requests.
const (
	Write  load.Kind = iota // one like or unlike
	Batch                   // likes:batch
	Count                   // one count
	Counts                  // a page of counts
	Has                     // which items of a page the user likes
	kinds
)

// Kinds is how many kinds there are.
const Kinds = int(kinds)

// KindName returns what a kind is called in results and in --expect.
func KindName(k load.Kind) string {
	return [...]string{Write: "write", Batch: "batch", Count: "count", Counts: "counts", Has: "has"}[k]
}

// KindNames returns all of them, in the order of the kinds.
func KindNames() []string {
	names := make([]string, Kinds)
	for k := range names {
		names[k] = KindName(load.Kind(k))
	}
	return names
}

// Mix is a workload: what part of the requests is of each kind, and which edges the
// writes are about.
type Mix struct {
	// Name is what the workload is called, About says what it shows.
	Name, About string
	// Weights are by load.Kind; their sum is what counts.
	Weights [kinds]float64
	// Hot is the part of the traffic that goes to HotItems of the items.
	Hot, HotItems float64
	// Liked is the part of the items that are ever liked.
	Liked float64
	// Unlike and Repeat are the parts of the writes that take back a like of
	// before, or send it again. The rest are first likes.
	Unlike, Repeat float64
	// Burst multiplies the rate at times.
	Burst load.Burst
}

// page is the number of items in a page of reads and in a batch of writes.
const page = 50

// mixes are the workloads that there are.
func mixes() []Mix {
	popular := Mix{Hot: 0.5, HotItems: 0.001, Liked: 0.2, Unlike: 0.10, Repeat: 0.05}
	with := func(name, about string, change func(*Mix)) Mix {
		m := popular
		m.Name, m.About = name, about
		change(&m)
		return m
	}
	only := func(k load.Kind) func(*Mix) { return func(m *Mix) { m.Weights[k] = 1 } }
	return []Mix{
		with("default", "reads and writes 100 to 1, pages of 50, a thousandth of the items takes half of it", func(m *Mix) {
			m.Weights = [kinds]float64{Write: 1, Count: 10, Counts: 60, Has: 30}
		}),
		with("write", "likes and unlikes alone, half of them on a thousandth of the items", only(Write)),
		with("hot", "all writes on one item", func(m *Mix) { m.Weights[Write], m.Hot, m.HotItems = 1, 1, 0 }),
		with("cold", "first likes, evenly over all items", func(m *Mix) {
			m.Weights[Write], m.Hot, m.Liked, m.Unlike, m.Repeat = 1, 0, 1, 0, 0
		}),
		with("toggles", "every like is taken back", func(m *Mix) { m.Weights[Write], m.Unlike, m.Repeat = 1, 0.5, 0 }),
		with("duplicates", "nine of ten writes repeat a like", func(m *Mix) { m.Weights[Write], m.Unlike, m.Repeat = 1, 0, 0.9 }),
		with("burst", "write, ten times as much for a second of every ten", func(m *Mix) {
			m.Weights[Write], m.Burst = 1, load.Burst{Factor: 10, Every: 10e9, Length: 1e9}
		}),
		with("batch", "writes of a backend, 50 a call", only(Batch)),
		with("count", "one item's count, half of the calls for a thousandth of the items", only(Count)),
		with("counts", "counts of pages of 50", only(Counts)),
		with("has", "which of 50 items a user likes", only(Has)),
	}
}

// Names returns the names of the workloads.
func Names() []string {
	all := mixes()
	names := make([]string, len(all))
	for i, m := range all {
		names[i] = m.Name
	}
	return names
}

// Describe returns a line for each workload.
func Describe() string {
	var b strings.Builder
	for _, m := range mixes() {
		fmt.Fprintf(&b, "  %-11s %s\n", m.Name, m.About)
	}
	return b.String()
}

// Named returns the workload of that name.
func Named(name string) (Mix, error) {
	for _, m := range mixes() {
		if m.Name == name {
			return m, nil
		}
	}
	return Mix{}, fmt.Errorf("workload %q is unknown, want one of %s", name, strings.Join(Names(), ", "))
}

// Reads says whether a kind changes nothing.
func Reads(k load.Kind) bool { return slices.Contains([]load.Kind{Count, Counts, Has}, k) }
