package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"likectl/benchmarks/result"
)

// Formats are the formats of a report.
func Formats() []string { return []string{"text", "markdown", "html", "go"} }

// Write writes a report of the runs in a format.
func Write(out io.Writer, format string, runs []result.Run) error {
	switch format {
	case "text":
		return text(out, runs)
	case "markdown":
		return markdown(out, runs)
	case "html":
		return html(out, runs)
	case "go":
		return goLines(out, runs)
	default:
		return fmt.Errorf("format %q is unknown, want one of %s", format, strings.Join(Formats(), ", "))
	}
}

func text(out io.Writer, runs []result.Run) error {
	for i := range runs {
		if i > 0 {
			if _, err := fmt.Fprintln(out); err != nil {
				return err
			}
		}
		if err := runs[i].Text(out); err != nil {
			return err
		}
	}
	return nil
}

func markdown(out io.Writer, runs []result.Run) error {
	var b strings.Builder
	m := runs[0].Machine
	fmt.Fprintf(&b, "%d cores (%s), %.0f GiB, Linux %s, %s; likectl %s\n\n", m.CPUs, m.CPU, float64(m.Memory)/(1<<30), m.Kernel, m.Go, runs[0].Target.Version)
	fmt.Fprintln(&b, "| workload | wanted/s | achieved/s | kind | p50 ms | p99 ms | p99.9 ms | max ms | failed | counts | |")
	fmt.Fprintln(&b, "|---|--:|--:|---|--:|--:|--:|--:|--:|---|---|")
	for i := range runs {
		r := &runs[i]
		verdict, counts := "valid", "not compared"
		if !r.Valid() {
			verdict = "**invalid**: " + strings.Join(r.Invalid, "; ")
		}
		if r.Check != nil {
			counts = fmt.Sprintf("%d of %d differ", r.Check.Different, r.Check.Counters)
		}
		for _, k := range r.Kinds {
			fmt.Fprintf(&b, "| %s | %.0f | %.0f | %s | %.2f | %.2f | %.2f | %.2f | %d | %s | %s |\n",
				r.Workload.Name, r.Wanted, k.Rate, k.Name, k.Latency.P50, k.Latency.P99, k.Latency.P999, k.Latency.Max, k.Failed(), counts, verdict)
		}
	}
	fmt.Fprintln(&b, "\n| workload | wanted/s | process | cores | us/request |\n|---|--:|---|--:|--:|")
	for i := range runs {
		for _, p := range runs[i].Processes {
			fmt.Fprintf(&b, "| %s | %.0f | %s | %.2f | %.1f |\n", runs[i].Workload.Name, runs[i].Wanted, p.Name, p.CPU/max(runs[i].Seconds, 1e-9), p.PerRequest)
		}
	}
	fmt.Fprintln(&b, "\n| workload | wanted/s | log bytes a like | likes a flush | likes a transaction |\n|---|--:|--:|--:|--:|")
	for i := range runs {
		s := runs[i].Server
		if s.Commits > 0 {
			fmt.Fprintf(&b, "| %s | %.0f | %.0f | %.1f | %.1f |\n", runs[i].Workload.Name, runs[i].Wanted,
				float64(s.Log)/max(s.Operations, 1), s.Operations/max(float64(s.Flushes), 1), s.Operations/s.Commits)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// goLines writes runs as go test writes benchmarks, so that benchstat reads them
// (golang.org/design/14313-benchmark-format).
func goLines(out io.Writer, runs []result.Run) error {
	var b strings.Builder
	fmt.Fprintf(&b, "goos: linux\npkg: likectl\ncpu: %s\n", runs[0].Machine.CPU)
	for i := range runs {
		r := &runs[i]
		for _, k := range r.Kinds {
			if !r.Valid() || k.OK == 0 {
				continue
			}
			fmt.Fprintf(&b, "BenchmarkLoad/workload=%s/kind=%s/rate=%.0f/conns=%d %d %.0f ns/op %.0f p50-ns %.0f p99-ns %.1f req/s\n",
				r.Workload.Name, k.Name, r.Wanted, r.Workload.Connections, k.OK, k.Latency.Mean*1e6, k.Latency.P50*1e6, k.Latency.P99*1e6, k.Rate)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

//go:embed report.html
var page string

// html writes a page that needs nothing but itself.
func html(out io.Writer, runs []result.Run) error {
	type run struct {
		Text   string
		Valid  bool
		Charts []template.HTML
	}
	var data struct {
		Title   string
		Machine result.Machine
		All     []template.HTML
		Runs    []run
	}
	draw := func(into *[]template.HTML, c chart) error {
		svg, err := c.svg()
		*into = append(*into, template.HTML(svg)) //nolint:gosec // made by the plot library, which escapes its text
		return err
	}
	data.Title, data.Machine = "likectl bench: "+runs[0].Workload.Name, runs[0].Machine
	all, err := distribution(runs)
	if err != nil {
		return err
	}
	if err := draw(&data.All, all); err != nil {
		return err
	}
	if c, several := knee(runs); several {
		if err := draw(&data.All, c); err != nil {
			return err
		}
	}
	for i := range runs {
		var b strings.Builder
		if err := runs[i].Text(&b); err != nil {
			return err
		}
		r := run{Text: b.String(), Valid: runs[i].Valid()}
		for _, c := range overTime(&runs[i]) {
			if err := draw(&r.Charts, c); err != nil {
				return err
			}
		}
		data.Runs = append(data.Runs, r)
	}
	t, err := template.New("report").Parse(page)
	if err != nil {
		return err
	}
	return t.Execute(out, data)
}
