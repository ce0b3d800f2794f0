package purge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"likectl/cmd/app"
	"likectl/cmd/cli"
	"likectl/pkg/erase"
	"likectl/pkg/ingest"
	"likectl/pkg/likes"
	"likectl/pkg/progress"
	"likectl/pkg/store"
)

// run reads the list, then erases its users and prints what it did, also when it
// fails half-way.
func run(ctx context.Context, s streams, o Options) (err error) {
	list, err := read(ctx, s.in, o)
	if err != nil {
		return err
	}
	e, err := app.OpenErasures(ctx, o.Config, o.Admin)
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	defer func() { err = errors.Join(err, e.Close(context.WithoutCancel(ctx))) }()
	began := time.Now()
	r := newReport(o, e.Name, list)
	if len(list.IDs) > 0 {
		if o.DryRun {
			r.Sum, err = preview(ctx, s.err, list.IDs, e)
		} else {
			r.Sum, err = purge(ctx, s.err, o, list.IDs, e)
		}
	}
	r.Seconds = math.Round(time.Since(began).Seconds()*1000) / 1000
	err = explain(ctx, o, r.Sum, err)
	if perr := r.print(s.out, o.Output); perr != nil && err == nil {
		err = perr
	}
	return err
}

// read returns the users of the list.
func read(ctx context.Context, stdin io.Reader, o Options) (ingest.Users, error) {
	open := func() (io.ReadCloser, error) { return os.Open(o.Path) }
	if o.Path == "-" {
		open = func() (io.ReadCloser, error) { return io.NopCloser(stdin), nil }
	}
	in := cli.Interruptible(ctx, open)
	defer func() { _ = in.Close() }() // it was only read
	list, err := ingest.ReadUsers(in, erase.MaxUsers, o.Skip)
	var bad *ingest.LineError
	switch {
	case err == nil:
		return list, nil
	case ctx.Err() != nil:
		return list, cli.WithCode(cli.Interrupted, fmt.Errorf("%s: interrupted; nothing was changed", o.name()))
	case errors.As(err, &bad):
		return list, cli.Usagef("%s: %w; nothing was changed; correct the line, or leave out such lines, but not a first one, with --on-error skip", o.name(), err)
	default:
		return list, cli.Usagef("%s: %w; nothing was changed", o.name(), err)
	}
}

// purge erases the users.
func purge(ctx context.Context, errOut io.Writer, o Options, users []likes.UserID, e *app.Erasures) (erase.Summary, error) {
	work, err := erase.New(e, erase.Config{Users: users, PerSecond: o.PerSecond}, func(likes.UserID, store.Erasure) error { return nil })
	if err != nil {
		return erase.Summary{}, cli.WithCode(cli.Usage, err)
	}
	bar := progress.Start(errOut, "users", func() progress.Sample {
		_, done := work.Progress()
		return progress.Sample{Done: done, Total: int64(len(users))}
	})
	defer bar.Stop()
	return work.Run(ctx)
}

// preview sums what there is of the users; those that are erased are counted as
// such.
func preview(ctx context.Context, errOut io.Writer, users []likes.UserID, e *app.Erasures) (erase.Summary, error) {
	var sum erase.Summary
	var done atomic.Int64
	bar := progress.Start(errOut, "users", func() progress.Sample {
		return progress.Sample{Done: done.Load(), Total: int64(len(users))}
	})
	defer bar.Stop()
	for _, u := range users {
		at, begun, err := e.Erasure(ctx, u)
		if err != nil {
			return sum, err
		}
		if done.Add(1); begun && !at.Finished.IsZero() {
			sum.Already++
			continue
		}
		left, err := e.Remains(ctx, u)
		if err != nil {
			return sum, err
		}
		sum.Users++
		sum.Removed.Edges += left.Edges
		sum.Removed.Tombstones += left.Tombstones
		sum.Removed.Relations += left.Relations
	}
	return sum, nil
}

// explain says what a purge that broke off means for the data and what to do next.
func explain(ctx context.Context, o Options, sum erase.Summary, err error) error {
	left := "nothing was changed: it was a dry run"
	if !o.DryRun {
		left = fmt.Sprintf("%s erased so far, of the others perhaps a part; run it again to go on, that changes nothing of what is done",
			cli.Count(sum.Users+sum.Already, "user"))
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return cli.WithCode(cli.Interrupted, fmt.Errorf("%s: interrupted; %s", o.name(), left))
	default:
		return fmt.Errorf("%s: %w; %s", o.name(), err, left)
	}
}

// report is what the command prints.
type report struct {
	File       string        `json:"file"`
	Target     string        `json:"target"`
	DryRun     bool          `json:"dry_run"`
	Listed     int           `json:"listed"`
	Repeated   int64         `json:"repeated"`
	Skipped    int64         `json:"skipped"`
	Bad        []badLine     `json:"bad_lines"`
	Sum        erase.Summary `json:"-"`
	Erased     int64         `json:"erased"`
	Already    int64         `json:"already_erased"`
	Edges      int64         `json:"edges"`
	Tombstones int64         `json:"tombstones"`
	Relations  int64         `json:"relations"`
	Seconds    float64       `json:"seconds"`
}

type badLine struct {
	Line  int64  `json:"line"`
	Error string `json:"error"`
}

func newReport(o Options, target string, list ingest.Users) *report {
	r := &report{
		File: o.name(), Target: target, DryRun: o.DryRun, Listed: len(list.IDs), Repeated: list.Repeated, Skipped: list.Skipped, Bad: []badLine{},
	}
	for _, b := range list.Bad {
		r.Bad = append(r.Bad, badLine{b.Line, b.Err.Error()})
	}
	return r
}

func (r *report) print(w io.Writer, output cli.Output) error {
	left := r.Sum.Removed
	r.Erased, r.Already, r.Edges, r.Tombstones, r.Relations = r.Sum.Users, r.Sum.Already, left.Edges, left.Tombstones, left.Relations
	if output == cli.JSON {
		return json.NewEncoder(w).Encode(r)
	}
	erased := "erased"
	if r.DryRun {
		erased = "to erase"
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	err := cli.PrintTable(w, [][]string{
		{"file", r.File},
		{"in", r.Target},
		{"listed", cli.Count(int64(r.Listed), "user")},
		{"repeated", cli.Count(r.Repeated, "line")},
		{"skipped", cli.Count(r.Skipped, "bad line")},
		{erased, cli.Count(r.Erased, "user")},
		{"already", cli.Count(r.Already, "user") + " erased before"},
		{"edges", number(r.Edges)},
		{"tombstones", number(r.Tombstones)},
		{"relations", number(r.Relations)},
		{"seconds", strconv.FormatFloat(r.Seconds, 'f', 3, 64)},
	})
	for _, b := range r.Bad {
		if err == nil {
			_, err = fmt.Fprintf(w, "  line %d: %s\n", b.Line, b.Error)
		}
	}
	if more := r.Skipped - int64(len(r.Bad)); more > 0 && err == nil {
		_, err = fmt.Fprintf(w, "  and %d more\n", more)
	}
	if r.DryRun && err == nil {
		_, err = fmt.Fprintln(w, "nothing was changed: this was a dry run. Without --dry-run it is done at once and cannot be undone")
	}
	return err
}
