package imports

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"likectl/cmd/cli"
	"likectl/pkg/ingest"
)

// report is what the command prints. Lines are the likes and unlikes applied,
// which the outcomes add up to; in a dry run those that could be.
type report struct {
	File       string    `json:"file"`
	Target     string    `json:"target,omitempty"`
	DryRun     bool      `json:"dry_run"`
	Lines      int64     `json:"lines"`
	Changed    int64     `json:"changed"`
	Unchanged  int64     `json:"unchanged"`
	Superseded int64     `json:"superseded"`
	Accepted   int64     `json:"accepted"`
	Skipped    int64     `json:"skipped"`
	Bad        []badLine `json:"bad_lines"`
	Through    int64     `json:"through_line"`
	Seconds    float64   `json:"seconds"`
	PerSecond  float64   `json:"lines_per_second"`
}

type badLine struct {
	Line  int64  `json:"line"`
	Error string `json:"error"`
}

func newReport(o Options, target string, sum ingest.Summary, took time.Duration) report {
	lines := sum.Applied()
	if o.DryRun {
		lines = sum.Lines
	}
	r := report{
		File: o.name(), Target: target, DryRun: o.DryRun, Lines: lines,
		Changed: sum.Changed, Unchanged: sum.Unchanged, Superseded: sum.Superseded, Accepted: sum.Accepted,
		Skipped: sum.Skipped, Through: sum.Through, Bad: []badLine{},
		Seconds: math.Round(took.Seconds()*1000) / 1000, PerSecond: math.Round(float64(lines) / max(took.Seconds(), 1e-6)),
	}
	for _, b := range sum.Bad {
		r.Bad = append(r.Bad, badLine{b.Line, b.Err.Error()})
	}
	return r
}

func (r report) print(w io.Writer, output cli.Output) error {
	if output == cli.JSON {
		return json.NewEncoder(w).Encode(r)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(tw, r.table()); err != nil {
		return err
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, b := range r.Bad {
		if _, err := fmt.Fprintf(w, "  line %d: %s\n", b.Line, b.Error); err != nil {
			return err
		}
	}
	if more := r.Skipped - int64(len(r.Bad)); more > 0 {
		if _, err := fmt.Fprintf(w, "  and %d more\n", more); err != nil {
			return err
		}
	}
	if r.DryRun {
		_, err := fmt.Fprintln(w, "nothing was applied: this was a dry run")
		return err
	}
	return nil
}

// table returns the numbers, tabs between their columns.
func (r report) table() string {
	text := "file\t" + r.File + "\n"
	if r.Target != "" {
		text += "into\t" + r.Target + "\n"
	}
	text += fmt.Sprintf("lines\t%d\n", r.Lines)
	if !r.DryRun {
		text += fmt.Sprintf("changed\t%d\n", r.Changed)
		text += fmt.Sprintf("unchanged\t%d\tnewer than what was stored, but the same state\n", r.Unchanged)
		text += fmt.Sprintf("superseded\t%d\tnot newer than what was stored or than another line, or of an erased user\n", r.Superseded)
		if r.Accepted > 0 {
			text += fmt.Sprintf("accepted\t%d\tdurable, applied soon\n", r.Accepted)
		}
	}
	text += fmt.Sprintf("skipped\t%d\tbad lines\n", r.Skipped)
	return text + fmt.Sprintf("seconds\t%.3f\t%.0f lines/s\n", r.Seconds, r.PerSecond)
}
