package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"likectl/benchmarks/result"
)

// Report is what a run of this program has found.
type Report struct {
	Started time.Time      `json:"started"`
	Machine result.Machine `json:"machine"`
	// Full is false for a smoke run, whose numbers are worth little.
	Full bool `json:"full"`
	// Seconds is the length of a case in a round, Took that of everything.
	Seconds float64 `json:"seconds"`
	Took    float64 `json:"took_s"`
	Rounds  int     `json:"rounds"`
	// Fdatasync is the median time of a flush of 8 kB.
	Fdatasync time.Duration `json:"fdatasync_ns"`
	// Settings are what the servers say of their durability.
	Settings []Setting `json:"settings"`
	Targets  []Target  `json:"targets"`
	Cases    []*Case   `json:"cases"`
}

// name is the report's file name without its ending.
func (r *Report) name() string {
	name := r.Started.Format("2006-01-02") + "-peers"
	if !r.Full {
		name += "-short"
	}
	return name
}

// store writes the report as Markdown and JSON.
func (r *Report) store(path string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	var b strings.Builder
	if err := r.markdown(&b); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(path+".json", append(text, '\n'), 0o644), os.WriteFile(path+".md", []byte(b.String()), 0o644)) //nolint:gosec // results are for everybody
}

// markdown writes the report for people.
func (r *Report) markdown(out io.Writer) error {
	var b strings.Builder
	m := r.Machine
	fmt.Fprintf(&b, "# Tier 1 beside what people use instead, %s\n\n", r.Started.Format("2006-01-02 15:04 MST"))
	if !r.Full {
		b.WriteString("**A smoke run: it shows that everything works. Its numbers are worth little.**\n\n")
	}
	fmt.Fprintf(&b, "%d cores (%s), %.0f GiB, Linux %s, %s; fdatasync of 8 kB: %.2f ms. Load, servers and databases share the cores.\n",
		m.CPUs, m.CPU, float64(m.Memory)/(1<<30), m.Kernel, m.Go, r.Fdatasync.Seconds()*1000)
	fmt.Fprintf(&b, "%d interleaved rounds of %.1f s a case, there and back; %.0f minutes in all. Every like is a first one. "+
		"Counts equalled edges, and edges what was acknowledged, after every round of every case but the recount.\n\n", r.Rounds, r.Seconds, r.Took/60)
	r.targets(&b)
	r.table(&b)
	r.scan(&b)
	b.WriteString("\n## Durability, as the servers say\n\n| server | setting | value |\n|---|---|---|\n")
	for _, s := range r.Settings {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", s.Server, s.Name, s.Value)
	}
	b.WriteString(`
## What is compared

- *pgbench documents*: the transaction and the tables of the design documents, two statements
  between begin and commit; *one statement*: a CTE over lean tables; *trigger*: the same
  tables, counted by a trigger; *recount*: count(*) after every like. All prepared, over the
  server's socket, inside its container.
- *naive handler*: the documents' transaction behind net/http and a pool of 16 sessions.
- *PocketBase*: a record per like, unique by user and item; durable with synchronous FULL, as
  shipped with NORMAL. Its count is the total of a filtered page, of an item with 100,000 likes.
- *Redis*: a Lua script that adds to a set and counts; a connection per client, or behind net/http.
- *likectl interface*: callers of the service in the load's own process; *HTTP*: a real process,
  tokens verified, limits on callers off; *likes:batch* of 50; *one caller*: by turns through the
  batcher and with the store's same single statement; *few* and *many rows*: the default workload's
  writes on a database that has grown.
`)
	_, err := io.WriteString(out, b.String())
	return err
}

// targets writes the verdicts.
func (r *Report) targets(b *strings.Builder) {
	b.WriteString("## Targets\n\nMedians over rounds with 95 % confidence intervals, or the range of fewer than 6 rounds.\n\n")
	b.WriteString("| | what | measured | interval | wanted | | of |\n|---|---|--:|---|---|---|---|\n")
	for _, t := range r.Targets {
		sign, verdict := "<=", "**fail**"
		if t.AtLeast {
			sign = ">="
		}
		if t.Pass {
			verdict = "pass"
		}
		fmt.Fprintf(b, "| %s | %s | %s %s | %s to %s | %s %g | %s | %s |\n",
			t.ID, t.What, digits(t.Value), t.Unit, digits(t.Low), digits(t.High), sign, t.Bound, verdict, t.Note)
	}
}

// table writes the cases of the rounds.
func (r *Report) table(b *strings.Builder) {
	b.WriteString("\n## Systems\n\nCPU in microseconds per like, or per read, of each process.\n\n")
	b.WriteString("| system | traffic | clients | per s | interval | P50 ms | P99 ms | CPU | fsyncs/like | likes/fsync | log B/like | wrong counts |\n")
	b.WriteString("|---|---|--:|--:|---|--:|--:|---|--:|--:|--:|--:|\n")
	for _, c := range r.Cases {
		if c.Scan || len(c.Samples) == 0 {
			continue
		}
		center, low, high := summary(series(c, rate))
		of := func(f func(Sample) float64) string { return optional(median(c, f)) }
		syncs := median(c, func(s Sample) float64 { return s.Syncs })
		perSync := 0.0
		if syncs > 0 {
			perSync = 1 / syncs
		}
		fmt.Fprintf(b, "| %s | %s | %d | %s | %s to %s | %s | %s | %s | %s | %s | %s | %s |\n", c.System, c.Traffic, c.Clients,
			digits(center), digits(low), digits(high), of(func(s Sample) float64 { return s.P50 }), of(func(s Sample) float64 { return s.P99 }),
			processors(c), optional(syncs), optional(perSync), of(func(s Sample) float64 { return s.WAL }), of(func(s Sample) float64 { return float64(s.Drifted) }))
	}
}

// processors are the CPU of all processes of a case.
func processors(c *Case) string {
	names := map[string]bool{}
	for _, s := range c.Samples {
		for name := range s.CPU {
			names[name] = true
		}
	}
	parts := make([]string, 0, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		parts = append(parts, fmt.Sprintf("%s %s", name, digits(median(c, func(s Sample) float64 { return s.CPU[name] }))))
	}
	return strings.Join(parts, ", ")
}

// scan writes how the best numbers of clients were found.
func (r *Report) scan(b *strings.Builder) {
	b.WriteString("\n## Search for the best number of clients\n\n| system | traffic | clients | per s |\n|---|---|--:|--:|\n")
	for _, c := range r.Cases {
		if c.Scan {
			fmt.Fprintf(b, "| %s | %s | %d | %s |\n", c.System, c.Traffic, c.Clients, digits(c.Samples[0].Rate))
		}
	}
}

// digits writes a number with three significant digits, large ones with commas.
func digits(v float64) string {
	if v < 1000 {
		return fmt.Sprintf("%.3g", v)
	}
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func optional(v float64) string {
	if v == 0 {
		return ""
	}
	return digits(v)
}
