// Package report turns runs into what people read: comparisons, Markdown, HTML with
// plots, and lines for benchstat.
package report

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchmath"

	"likectl/benchmarks/result"
)

// Difference is one measure of two sets of runs.
type Difference struct {
	Measure string `json:"measure"`
	Unit    string `json:"unit"`
	// Old and New are medians, Low and High the bounds of their confidence intervals
	// of 95 %.
	Old     float64 `json:"old"`
	OldLow  float64 `json:"old_low"`
	OldHigh float64 `json:"old_high"`
	New     float64 `json:"new"`
	NewLow  float64 `json:"new_low"`
	NewHigh float64 `json:"new_high"`
	// Change is New/Old - 1.
	Change float64 `json:"change"`
	// P is the probability of samples this different from equal servers
	// (Mann-Whitney U test).
	P float64 `json:"p"`
	// Differs: P is small for so many measures, and the change large enough to
	// matter.
	Differs bool `json:"differs"`
}

// Comparison is all of them.
type Comparison struct {
	// Samples says what was compared: whole runs, or the seconds of runs.
	Samples     string       `json:"samples"`
	N1          int          `json:"n_old"`
	N2          int          `json:"n_new"`
	Differences []Difference `json:"differences"`
}

const (
	// alpha is the probability of finding any difference between equal servers; it
	// is shared by the measures (Bonferroni).
	alpha = 0.01
	// minChange is what a change must be at least: seconds of one run resemble
	// each other more than chance would have it, and nobody acts on less.
	minChange = 0.03
	// minRuns is how many runs on each side are compared as such. With fewer, their
	// seconds are: the test needs some five values on each side.
	minRuns = 5
	// confidence is that of the intervals.
	confidence = 0.95
)

// series are the values of one measure.
type series struct {
	name, unit string
	values     []float64
}

// Compare compares two sets of runs of one workload. It refuses invalid runs and
// runs that are not of the same kind.
func Compare(old, now []result.Run) (c Comparison, err error) {
	if err := comparable(old, now); err != nil {
		return c, err
	}
	c.Samples = "seconds"
	of := seconds
	if len(old) >= minRuns && len(now) >= minRuns {
		c.Samples, of = "runs", wholes
	}
	was, is := of(old), of(now)
	thresholds := benchmath.DefaultThresholds
	for i, a := range was {
		j := slices.IndexFunc(is, func(b series) bool { return b.name == a.name })
		if j < 0 {
			continue
		}
		x, y := benchmath.NewSample(slices.Clone(a.values), &thresholds), benchmath.NewSample(slices.Clone(is[j].values), &thresholds)
		s1, s2 := benchmath.AssumeNothing.Summary(x, confidence), benchmath.AssumeNothing.Summary(y, confidence)
		d := Difference{
			Measure: a.name, Unit: a.unit, Old: s1.Center, OldLow: s1.Lo, OldHigh: s1.Hi, New: s2.Center, NewLow: s2.Lo, NewHigh: s2.Hi,
			P: benchmath.AssumeNothing.Compare(x, y).P,
		}
		if s1.Center != 0 {
			d.Change = s2.Center/s1.Center - 1
		}
		if i == 0 {
			c.N1, c.N2 = len(a.values), len(is[j].values)
		}
		c.Differences = append(c.Differences, d)
	}
	for i := range c.Differences {
		d := &c.Differences[i]
		d.Differs = d.P < alpha/float64(len(c.Differences)) && math.Abs(d.Change) >= minChange
	}
	return c, nil
}

// comparable returns an error that says why two sets cannot be compared.
func comparable(old, now []result.Run) error {
	if len(old) == 0 || len(now) == 0 {
		return errors.New("there are no runs to compare")
	}
	first := old[0]
	for _, r := range slices.Concat(old, now) {
		w := r.Workload
		switch {
		case !r.Valid():
			return fmt.Errorf("the run of %s is invalid (%s): it says nothing about a server", r.Started.Format("15:04:05"), strings.Join(r.Invalid, "; "))
		case w.Name != first.Workload.Name || r.Wanted != first.Wanted || w.Connections != first.Workload.Connections ||
			w.Items != first.Workload.Items || w.Users != first.Workload.Users:
			return fmt.Errorf("the runs differ in what was asked for: %s at %g/s over %d connections, %d items and %d users, against %s at %g/s over %d, %d and %d",
				first.Workload.Name, first.Wanted, first.Workload.Connections, first.Workload.Items, first.Workload.Users,
				w.Name, r.Wanted, w.Connections, w.Items, w.Users)
		}
	}
	return nil
}

// wholes takes one value from each run.
func wholes(runs []result.Run) []series {
	set := newSet()
	for i := range runs {
		r := &runs[i]
		set.add("rate", "/s", r.Achieved)
		for _, k := range r.Kinds {
			set.add(k.Name+" p50", "ms", k.Latency.P50)
			set.add(k.Name+" p99", "ms", k.Latency.P99)
			set.add(k.Name+" mean", "ms", k.Latency.Mean)
		}
		for _, p := range r.Processes {
			set.add("cpu of "+p.Name, "us/request", p.PerRequest)
		}
	}
	return set.all
}

// seconds takes one value from each second of each run.
func seconds(runs []result.Run) []series {
	set := newSet()
	for i := range runs {
		for _, p := range runs[i].Series {
			if runs[i].Wanted == 0 {
				set.add("rate", "/s", float64(p.OK))
			}
			set.add("p50", "ms", p.P50)
			set.add("p99", "ms", p.P99)
			for name, cpu := range p.CPU {
				set.add("cpu of "+name, "us/request", cpu*1e6/max(1, float64(p.OK)))
			}
		}
	}
	return set.all
}

// set collects values by name, in the order in which names appear.
type set struct {
	all []series
	at  map[string]int
}

func newSet() *set { return &set{at: map[string]int{}} }

func (s *set) add(name, unit string, v float64) {
	i, ok := s.at[name]
	if !ok {
		i = len(s.all)
		s.at[name] = i
		s.all = append(s.all, series{name: name, unit: unit})
	}
	s.all[i].values = append(s.all[i].values, v)
}

// Different says whether any measure differs.
func (c *Comparison) Different() bool {
	return slices.ContainsFunc(c.Differences, func(d Difference) bool { return d.Differs })
}

// Text prints the comparison for people.
func (c *Comparison) Text(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(format string, args ...any) { _, _ = fmt.Fprintf(t, format, args...) } // Flush returns its errors
	row("measure\told\tnew\tchange\tp\t\n")
	for _, d := range c.Differences {
		verdict := "no difference"
		if d.Differs {
			verdict = "DIFFERS"
		}
		row("%s\t%.4g %s [%.4g, %.4g]\t%.4g %s [%.4g, %.4g]\t%+.1f%%\t%.2g\t%s\n",
			d.Measure, d.Old, d.Unit, d.OldLow, d.OldHigh, d.New, d.Unit, d.NewLow, d.NewHigh, 100*d.Change, d.P, verdict)
	}
	row("\nmedians with their 95%% confidence intervals, from %d and %d %s\n", c.N1, c.N2, c.Samples)
	return t.Flush()
}
