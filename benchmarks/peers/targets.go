package main

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// Target is one goal, with what was measured.
type Target struct {
	ID   string `json:"id"`
	What string `json:"what"`
	// Value is a median, Low and High the bounds of its confidence interval of 95 %
	// (as far as the number of rounds gives one). Rounds are paired: a ratio is one of
	// the same round.
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Unit  string  `json:"unit"`
	// AtLeast says which way Bound goes.
	AtLeast bool    `json:"at_least"`
	Bound   float64 `json:"bound"`
	Pass    bool    `json:"pass"`
	// Upper: the bound is one for High, not for the median.
	Upper bool `json:"upper,omitempty"`
	// Note says what to know about it.
	Note string `json:"note,omitempty"`
}

// confidence is that of all intervals.
const confidence = 0.95

// summary is a median with its interval.
func summary(values []float64) (center, low, high float64) {
	if len(values) == 0 {
		return 0, 0, 0
	}
	thresholds := benchmath.DefaultThresholds
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(values), &thresholds), confidence)
	// Too few values bound nothing: their range is all that is known.
	return s.Center, max(s.Lo, slices.Min(values)), min(s.Hi, slices.Max(values))
}

// measures are the cases of a run by what they are.
type measures struct {
	cases   []*Case
	targets []Target
}

// median returns the median of a measure of a case.
func median(c *Case, of func(Sample) float64) float64 {
	center, _, _ := summary(series(c, of))
	return center
}

func series(c *Case, of func(Sample) float64) []float64 {
	out := make([]float64, len(c.Samples))
	for i, s := range c.Samples {
		out[i] = of(s)
	}
	return out
}

func rate(s Sample) float64 { return s.Rate }

// serverAndDatabase is what a like costs without the one who makes it.
func serverAndDatabase(s Sample) float64 { return s.CPU[server] + s.CPU[database] }

// find returns the case of a system under a traffic: with so many clients, or with
// 0 the one with the greatest rate. nil: it was not measured.
func (m *measures) find(system string, t Traffic, clients int) (found *Case) {
	for _, c := range m.cases {
		if c.Scan || c.System != system || c.Traffic != t || clients > 0 && c.Clients != clients {
			continue
		}
		if found == nil || median(c, rate) > median(found, rate) {
			found = c
		}
	}
	return found
}

// judge adds a target over values of rounds.
func (m *measures) judge(t Target, values []float64) {
	values = slices.DeleteFunc(values, func(v float64) bool { return math.IsInf(v, 0) || math.IsNaN(v) }) // nothing was counted
	if len(values) == 0 {
		return
	}
	t.Value, t.Low, t.High = summary(values)
	judged := t.Value
	if t.Upper {
		judged = t.High
	}
	t.Pass = judged >= t.Bound
	if !t.AtLeast {
		t.Pass = judged <= t.Bound
	}
	m.targets = append(m.targets, t)
}

// ratio adds a target over what one case has per other, by rounds.
func (m *measures) ratio(t Target, a, b *Case, of func(Sample) float64) {
	if a == nil || b == nil {
		return
	}
	x, y := series(a, of), series(b, of)
	values := make([]float64, 0, len(x))
	for i := range min(len(x), len(y)) {
		if y[i] > 0 {
			values = append(values, x[i]/y[i])
		}
	}
	t.Unit = "x"
	t.Note = join(t.Note, fmt.Sprintf("%s over %s", a.Name(), b.Name()))
	m.judge(t, values)
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// absolute adds a target over a measure of one case.
func (m *measures) absolute(t Target, c *Case, of func(Sample) float64) {
	if c == nil {
		return
	}
	t.Note = join(t.Note, c.Name())
	m.judge(t, series(c, of))
}

// judge holds everything that was measured against the targets.
func judge(cases []*Case) []Target {
	m := &measures{cases: cases}
	m.postgres()
	m.costs()
	m.idle()
	m.growth()
	m.reads()
	m.others()
	m.generator()
	return m.targets
}

// postgres are P1 to P3: likes per second beside plain Postgres.
func (m *measures) postgres() {
	for _, t := range []struct {
		id, what string
		system   string
		traffic  Traffic
		peer     string
		clients  int
		bound    float64
	}{
		{"P1", "interface, one hot item, over the documents' transaction at its best", Interface, Hot, Documents, 0, 20},
		{"P1", "interface, one hot item, over the documents' transaction at 64 clients", Interface, Hot, Documents, 64, 100},
		{"P1", "HTTP, one hot item, over the documents' transaction at its best", HTTP, Hot, Documents, 0, 10},
		{"P1", "HTTP, one hot item, over the documents' transaction at 64 clients", HTTP, Hot, Documents, 64, 40},
		{"P2", "interface, uniform, over the documents' transaction at its best", Interface, Uniform, Documents, 0, 10},
		{"P2", "interface, uniform, over one statement at its best", Interface, Uniform, OneStatement, 0, 5},
		{"P2", "HTTP, uniform, over the documents' transaction at its best", HTTP, Uniform, Documents, 0, 5},
		{"P2", "interface, Zipf, over the documents' transaction at its best", Interface, Zipf, Documents, 0, 10},
		{"P2", "interface, Zipf, over one statement at its best", Interface, Zipf, OneStatement, 0, 5},
		{"P2", "HTTP, Zipf, over the documents' transaction at its best", HTTP, Zipf, Documents, 0, 5},
	} {
		m.ratio(Target{ID: t.id, What: t.what, AtLeast: true, Bound: t.bound},
			m.find(t.system, t.traffic, 0), m.find(t.peer, t.traffic, t.clients), rate)
	}
	for _, system := range []string{Interface, HTTP} {
		m.ratio(Target{ID: "P3", What: system + ": hot over uniform", AtLeast: true, Bound: 1}, m.find(system, Hot, 0), m.find(system, Uniform, 0), rate)
	}
}

// costs is P4: processor time of server and database.
func (m *measures) costs() {
	for _, t := range []Traffic{Hot, Uniform, Zipf} {
		m.absolute(Target{ID: "P4", What: "CPU of server and database per like, single requests", Unit: "us", Bound: 30}, m.find(HTTP, t, 0), serverAndDatabase)
	}
	for _, t := range []Traffic{Hot, Uniform} {
		m.absolute(Target{ID: "P4", What: "CPU of server and database per like, likes:batch of 50", Unit: "us", Bound: 12}, m.find(Batch, t, 0), serverAndDatabase)
	}
}

// idle is P5: what batching costs who is alone, and gives who is not.
func (m *measures) idle() {
	c := m.find(Alone, Uniform, 0)
	m.absolute(Target{ID: "P5", What: "one caller: median batched over unbatched", Unit: "x", Bound: 1.05}, c,
		func(s Sample) float64 { return s.P50 / s.Extra["single_p50_ms"] })
	m.absolute(Target{ID: "P5", What: "one caller: P99 batched over unbatched, upper bound", Unit: "x", Bound: 1.2, Upper: true}, c,
		func(s Sample) float64 { return s.P99 / s.Extra["single_p99_ms"] })
	for _, t := range []Traffic{Hot, Uniform, Zipf} {
		m.absolute(Target{ID: "P5", What: "256 in flight: likes per fsync", Unit: "likes", AtLeast: true, Bound: 64}, m.find(Interface, t, 256),
			func(s Sample) float64 { return 1 / s.Syncs })
	}
}

// growth is P6. "Flat" is taken as within a quarter: so much do the quantiles 99 of two
// equal runs of this length differ.
func (m *measures) growth() {
	few, many := m.find(Small, "default", 0), m.find(Large, "default", 0)
	m.ratio(Target{ID: "P6", What: "CPU of server and database per like, many rows over few", Bound: 1.15}, many, few, serverAndDatabase)
	m.ratio(Target{ID: "P6", What: "P99 of a count, many rows over few", Bound: 1.25}, many, few, func(s Sample) float64 { return s.Extra["count_p99_ms"] })
	m.ratio(Target{ID: "P6", What: "P99 of has_liked, many rows over few", Bound: 1.25}, many, few, func(s Sample) float64 { return s.Extra["has_p99_ms"] })
	c := m.find(Cycle, "default", 0)
	if c == nil {
		return
	}
	note := fmt.Sprintf("the first %.0f s after a checkpoint, in which most pages are written whole: more than over a whole cycle; the last quarter alone: %.0f B",
		c.Samples[0].Extra["seconds"], c.Samples[0].Extra["last_wal_bytes"])
	m.absolute(Target{ID: "P6", What: "log per like, default workload", Unit: "B", Bound: 300, Note: note}, c, func(s Sample) float64 { return s.WAL })
}

// reads is P8. Its first line is a goal of tier 2 and is printed for comparison.
func (m *measures) reads() {
	page, one := m.find(Counts, "default", 0), m.find(Count, Hot, 0)
	m.ratio(Target{ID: "P8", What: "CPU of a page of 50 counts over one count", Bound: 1.5, Note: "a goal of tier 2, where reads are cached"}, page, one, serverAndDatabase)
	m.absolute(Target{ID: "P8", What: "P99 of a page of 50 counts, closed loop", Unit: "ms", Bound: 15}, page, func(s Sample) float64 { return s.P99 })
	m.absolute(Target{ID: "P8", What: "counts per second in pages of 50", Unit: "/s", AtLeast: true, Bound: 1e6}, page, func(s Sample) float64 { return 50 * s.Rate })
}

// others is P15: beside Redis and PocketBase.
func (m *measures) others() {
	for _, t := range []Traffic{Hot, Uniform} {
		redis := m.find(RedisAlways, t, 0)
		m.ratio(Target{ID: "P15", What: "interface, " + string(t) + ", over Redis with appendfsync always", AtLeast: true, Bound: 1}, m.find(Interface, t, 0), redis, rate)
		m.ratio(Target{ID: "P15", What: "likes:batch, " + string(t) + ", over Redis with appendfsync always", AtLeast: true, Bound: 1}, m.find(Batch, t, 0), redis, rate)
		for _, base := range []string{BaseDurable, BaseShipped} {
			m.ratio(Target{ID: "P15", What: "HTTP, " + string(t) + ", over " + base, AtLeast: true, Bound: 3}, m.find(HTTP, t, 0), m.find(base, t, 0), rate)
		}
	}
	m.ratio(Target{ID: "P15", What: "counts of a hot item over HTTP, over PocketBase", AtLeast: true, Bound: 10}, m.find(Count, Hot, 0), m.find(BaseCount, Hot, 0), rate)
}

// generator is P14.
func (m *measures) generator() {
	m.ratio(Target{ID: "P14", What: "CPU of the load generator per request over a raw socket client", Bound: 1.5}, m.find(Load, "", 0), m.find(Raw, "", 0),
		func(s Sample) float64 { return s.CPU[own] })
	m.absolute(Target{ID: "P14", What: "the generator's own lateness at 20,000/s, P99", Unit: "ms", Bound: 0.2}, m.find(LoadAtRate, "", 0),
		func(s Sample) float64 { return s.Extra["late_p99_ms"] })
}
