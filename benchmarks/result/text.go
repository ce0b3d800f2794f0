package result

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Text prints a run for people.
func (r *Run) Text(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s (likectl %s), %s\n", r.Workload.Name, r.Target.URL, r.Target.Version, r.Started.Format("2006-01-02 15:04:05 MST"))
	fmt.Fprintf(&b, "%d connections, %s users, %s items, %s edges before; warm-up %gs, measured %.1fs\n",
		r.Workload.Connections, group(r.Workload.Users), group(r.Workload.Items), group(r.Workload.Preloaded), r.Workload.Warmup, r.Seconds)
	wanted := "as fast as possible"
	if r.Wanted > 0 {
		wanted = group(int64(r.Wanted)) + "/s"
	}
	fmt.Fprintf(&b, "wanted %s, achieved %s/s\n\n", wanted, group(int64(r.Achieved)))
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(format string, args ...any) { _, _ = fmt.Fprintf(t, format, args...) } // Flush returns its errors
	row("requests\tper s\tok\tfailed\tp50 ms\tp90 ms\tp99 ms\tp99.9 ms\tmax ms\t\n")
	for _, k := range r.Kinds {
		l := k.Latency
		row("%s\t%s\t%s\t%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t\n",
			k.Name, group(int64(k.Rate)), group(k.OK), group(k.Failed()), l.P50, l.P90, l.P99, l.P999, l.Max)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	b.WriteByte('\n')
	for _, k := range r.Kinds {
		for _, fault := range slices.Sorted(maps.Keys(k.Errors)) {
			fmt.Fprintf(&b, "failed: %s of %s: %s\n", group(k.Errors[fault]), k.Name, fault)
		}
	}
	for _, p := range r.Processes {
		fmt.Fprintf(&b, "cpu of %s: %.2f cores, %.1f us a request\n", p.Name, p.CPU/max(r.Seconds, 1e-9), p.PerRequest)
	}
	if r.Server.Commits > 0 {
		fmt.Fprintf(&b, "durable transactions: %s, with %.1f likes each\n", group(int64(r.Server.Commits)), r.Server.Operations/r.Server.Commits)
	}
	if r.Server.Log > 0 && r.Server.Operations > 0 {
		fmt.Fprintf(&b, "the database's log: %.0f bytes a like", float64(r.Server.Log)/r.Server.Operations)
		if r.Server.Flushes > 0 {
			fmt.Fprintf(&b, ", %s flushes, %.1f likes each", group(r.Server.Flushes), r.Server.Operations/float64(r.Server.Flushes))
		}
		b.WriteByte('\n')
	}
	if r.Late.Count > 0 {
		fmt.Fprintf(&b, "the generator was late by %.3f ms at the 99th percentile\n", r.Late.P99)
	}
	switch {
	case r.Check == nil:
		fmt.Fprintln(&b, "counts were not compared with their edges")
	case r.Check.Different == 0:
		fmt.Fprintf(&b, "all of %s counts equal their edges\n", group(r.Check.Counters))
	}
	if r.Valid() {
		fmt.Fprintln(&b, "VALID")
	}
	for _, reason := range r.Invalid {
		fmt.Fprintf(&b, "INVALID: %s\n", reason)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// group writes a number with commas between thousands.
func group(n int64) string {
	if n < 0 {
		return "-" + group(-n)
	}
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
