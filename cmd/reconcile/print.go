package reconcile

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"likectl/cmd/cli"
	"likectl/pkg/likes"
	"likectl/pkg/reconcile"
)

// printer lists what a walk finds as it finds it: of a long walk that breaks off
// what was found is not lost, and millions of drifts need no memory.
type printer struct {
	w      io.Writer
	output cli.Output
	dryRun bool
	types  likes.ItemTypes
	store  string
	items  []string // that were asked for; none: all counters were
	n      int

	largest largest
}

func newPrinter(w io.Writer, o Options, t *target) *printer {
	return &printer{w: w, output: o.Output, dryRun: o.DryRun, types: t.types, store: t.name, items: o.Items}
}

// begin says whose counters are compared.
func (p *printer) begin() error {
	if p.output == cli.JSON {
		return nil
	}
	_, err := fmt.Fprintf(p.w, "counters in %s\n", p.store)
	return err
}

// driftLine is a counter that differed, in JSON.
type driftLine struct {
	Counter    string `json:"counter"`
	ItemType   string `json:"item_type"`
	ItemID     string `json:"item_id"`
	Stored     int64  `json:"stored"`
	Edges      int64  `json:"edges"`
	Difference int64  `json:"difference"`
	Missing    bool   `json:"missing"`
	Repaired   bool   `json:"repaired"`
	Cause      string `json:"cause"`

	// RightAt is absent if it is not known.
	RightAt time.Time `json:"right_at,omitzero"`
}

func (p *printer) driftLine(f reconcile.Found) driftLine {
	return driftLine{
		f.Counter.String(), p.types.Name(f.Item.Type), strconv.FormatInt(int64(f.Item.ID), 10),
		f.Stored, f.Edges, f.Difference(), f.Missing, f.Repaired, f.Cause(), f.RightAt,
	}
}

const row = "%-7s  %-30s  %12s  %12s  %12s  %-7s  %s\n"

func (p *printer) found(f reconcile.Found) error {
	p.n++
	p.largest.add(f)
	if p.output == cli.JSON {
		before := ","
		if p.n == 1 {
			before = `{"drifts":[`
		}
		text, err := json.Marshal(p.driftLine(f))
		if err == nil {
			_, err = fmt.Fprintf(p.w, "%s\n  %s", before, text)
		}
		return err
	}
	if p.n == 1 {
		if _, err := fmt.Fprintf(p.w, row, "COUNTER", "ITEM", "STORED", "EDGES", "DIFFERENCE", "CAUSE", "STATE"); err != nil {
			return err
		}
	}
	return p.row(f)
}

func (p *printer) row(f reconcile.Found) error {
	state := "repaired"
	switch {
	case p.dryRun:
		state = "differs"
	case !f.Repaired:
		state = "differs again"
	}
	stored := strconv.FormatInt(f.Stored, 10)
	if f.Missing {
		stored = "none"
	}
	_, err := fmt.Fprintf(p.w, row, f.Counter, fmt.Sprintf("%s:%d", p.types.Name(f.Item.Type), f.Item.ID),
		stored, strconv.FormatInt(f.Edges, 10), fmt.Sprintf("%+d", f.Difference()), f.Cause(), state)
	return err
}

// ranked lists the largest differences once more, if there were too many to see,
// and says since when there can be any.
func (p *printer) ranked() error {
	if len(p.largest) == 0 {
		return nil
	}
	if p.n > largestShown {
		if err := p.line("\nthe largest of them:"); err != nil {
			return err
		}
		for _, f := range p.largest {
			if err := p.row(f); err != nil {
				return err
			}
		}
	}
	if at := p.largest[0].RightAt; !at.IsZero() {
		return p.line("none is older than the complete walk of %s, which left all counters right", at.Format(time.RFC3339))
	}
	return nil
}

// summary ends the list; complete says whether the walk reached its end.
func (p *printer) summary(sum reconcile.Summary, took time.Duration, complete bool) error {
	seconds := took.Seconds()
	if p.output == cli.JSON {
		before := "\n]"
		if p.n == 0 {
			before = `{"drifts":[]`
		}
		target, err := json.Marshal(p.store)
		if err != nil {
			return err
		}
		lines := make([]driftLine, len(p.largest))
		for i, f := range p.largest {
			lines[i] = p.driftLine(f)
		}
		top, err := json.Marshal(lines)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.w, "%s,\"largest\":%s,\"target\":%s,\"dry_run\":%t,\"complete\":%t,\"checked\":%d,\"drifted\":%d,\"repaired\":%d,\"magnitude\":%d,\"seconds\":%.3f}\n",
			before, top, target, p.dryRun, complete, sum.Checked, sum.Drifted, sum.Repaired, sum.Magnitude, seconds)
		return err
	}
	if err := p.ranked(); err != nil {
		return err
	}
	text := "all equal their likes"
	if sum.Checked == 1 {
		text = "it equals its likes"
	}
	absent := max(0, int64(len(p.items))-sum.Checked)
	switch {
	case sum.Checked == 0 && complete && len(p.items) == 1:
		return p.line("nothing to compare: %s has neither a counter nor likes", p.items[0])
	case sum.Checked == 0 && complete:
		return p.line("nothing to compare: there are neither counters nor likes")
	case sum.Checked == 0:
		return p.line("no counter was compared in %.3f s", seconds)
	case sum.Drifted == 0 && !complete:
		text = "they equal their likes, the rest was not looked at"
	case sum.Drifted > 0 && p.dryRun:
		text = fmt.Sprintf("%d differ by %d in sum; nothing was changed (dry run)", sum.Drifted, sum.Magnitude)
	case sum.Drifted > 0:
		text = fmt.Sprintf("%d differed by %d in sum, %d repaired and verified", sum.Drifted, sum.Magnitude, sum.Repaired)
	}
	if complete && absent > 0 {
		text += fmt.Sprintf("; %s without counter and likes", cli.Count(absent, "item"))
	}
	return p.line("%s compared in %.3f s: %s", cli.Count(sum.Checked, "counter"), seconds, text)
}

func (p *printer) line(format string, args ...any) error {
	_, err := fmt.Fprintf(p.w, format+"\n", args...)
	return err
}
