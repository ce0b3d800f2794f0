package imports

import (
	"context"
	"errors"
	"fmt"
	"time"

	"likectl/cmd/app"
	"likectl/cmd/cli"
	"likectl/pkg/ingest"
	"likectl/pkg/likes"
	"likectl/pkg/progress"
)

// target is where the likes go.
type target struct {
	name  string
	types likes.ItemTypes
	apply ingest.ApplyFunc
	close func(context.Context) error
}

// open opens the target. A dry run has a server's item types checked, but opens
// no store.
func open(ctx context.Context, o Options) (*target, error) {
	t := &target{close: func(context.Context) error { return nil }}
	if o.Admin != "" {
		client, err := app.AdminClient(o.Config, o.Admin)
		if err != nil {
			return nil, err
		}
		t.name, t.apply = "the server at "+o.Admin, client.Apply
		t.close = func(context.Context) error { client.Close(); return nil }
		if t.types, err = client.ItemTypes(ctx); err != nil {
			client.Close()
			return nil, fmt.Errorf("nothing was imported: %w", err)
		}
		return t, nil
	}
	var err error
	if t.types, err = o.Config.ItemTypes(); err != nil || o.DryRun {
		return t, err
	}
	tier, err := app.OpenForImport(ctx, o.Config, o.Create)
	if err != nil {
		return nil, fmt.Errorf("nothing was imported: %w", err)
	}
	t.name, t.apply, t.close = tier.Backend, tier.Service.Apply, tier.Close
	return t, nil
}

// run imports and prints what it did, also when it fails half-way.
func run(ctx context.Context, s streams, o Options) (err error) {
	in, err := openInput(ctx, s.in, o.Path)
	if err != nil {
		return err
	}
	defer func() { _ = in.close() }()
	t, err := open(ctx, o)
	if err != nil {
		return err
	}
	defer func() {
		// The context may have ended; what is in flight is still to be finished.
		err = errors.Join(err, t.close(context.WithoutCancel(ctx)))
	}()
	return importInto(ctx, s, o, in, t)
}

func importInto(ctx context.Context, s streams, o Options, in *input, t *target) error {
	reader, err := ingest.OpenReader(in, ingest.ReaderConfig{Format: o.Format, Types: t.types, Size: in.size})
	switch {
	case err != nil && ctx.Err() != nil:
		return cli.WithCode(cli.Interrupted, fmt.Errorf("%s: interrupted; nothing was imported", o.name()))
	case err != nil:
		return cli.Usagef("%s: %w; nothing was imported", o.name(), err)
	}
	config := ingest.DefaultConfig()
	config.Batch, config.Skip = o.Batch, o.Skip
	if o.DryRun {
		t.apply, t.name = nil, ""
	}
	work, err := ingest.NewImport(reader, t.apply, config)
	if err != nil {
		return err
	}
	began := time.Now()
	bar := progress.Start(s.err, "lines", func() progress.Sample {
		sample := in.sample(work.Done())
		sample.Stalled = work.Stalled()
		return sample
	})
	sum, err := work.Run(ctx)
	bar.Stop()
	if err == nil || o.Output == cli.JSON || o.DryRun || sum.Applied()+sum.Skipped > 0 { // else there is nothing to list
		r := newReport(o, t.name, sum, time.Since(began))
		if perr := r.print(s.out, o.Output); perr != nil && err == nil {
			err = perr
		}
	}
	return explain(o, sum, err)
}

// explain says what an unfinished import means for the data and what to do next.
func explain(o Options, sum ingest.Summary, err error) error {
	var bad *ingest.LineError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &bad):
		return cli.Usagef("%s: %w; %s", o.name(), err, afterBadLine(o, sum))
	case errors.Is(err, context.Canceled):
		return cli.WithCode(cli.Interrupted, fmt.Errorf("%s: interrupted; %s", o.name(), applied(o, sum)))
	default:
		return fmt.Errorf("%s: %w; %s", o.name(), err, applied(o, sum))
	}
}

func afterBadLine(o Options, sum ingest.Summary) string {
	fix := "correct the line, or leave out such lines with --on-error skip"
	if o.DryRun {
		return fmt.Sprintf("%s before it can be imported; %s", cli.Count(sum.Lines, "like"), fix)
	}
	if sum.Applied() == 0 {
		return "nothing was imported; " + fix
	}
	return fmt.Sprintf("%s before it had been imported, nothing from it on; %s, and import the file again: "+
		"that is safe, what has been imported does not change", cli.Count(sum.Applied(), "like"), fix)
}

func applied(o Options, sum ingest.Summary) string {
	if o.DryRun {
		return fmt.Sprintf("it was read up to line %d and nothing was applied", sum.Through)
	}
	if sum.Applied() == 0 && !sum.Uncertain {
		return "nothing was imported; import the file again"
	}
	some := ""
	if sum.Applied() < sum.Lines {
		some = ", some after it may have been"
	}
	return fmt.Sprintf("everything up to line %d has been imported%s; import the file again to complete it: "+
		"that is safe, what has been imported does not change", sum.Through, some)
}
