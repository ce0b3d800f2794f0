package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"likectl/cmd/app"
	"likectl/cmd/cli"
	"likectl/pkg/export"
	"likectl/pkg/likes"
	"likectl/pkg/progress"
	"likectl/pkg/store"
)

// source is whose edges are exported.
type source struct {
	types  likes.ItemTypes
	walker store.Walker
	close  func(context.Context) error
}

func open(ctx context.Context, o Options) (*source, error) {
	if o.Admin != "" {
		client, types, err := app.AskServer(ctx, o.Config, o.Admin)
		if err != nil {
			return nil, err
		}
		return &source{types, client, func(context.Context) error { client.Close(); return nil }}, nil
	}
	types, err := o.Config.ItemTypes()
	if err != nil {
		return nil, err
	}
	tier, err := app.OpenExisting(ctx, o.Config)
	if err != nil {
		return nil, err
	}
	return &source{types, tier.Walker, tier.Close}, nil
}

// run exports and says how much.
func run(ctx context.Context, out, errOut io.Writer, o Options) (err error) {
	s, err := open(ctx, o)
	if err != nil {
		return fmt.Errorf("nothing was exported: %w", err)
	}
	defer func() { err = errors.Join(err, s.close(context.WithoutCancel(ctx))) }()
	began := time.Now()
	sum, err := exportTo(ctx, out, errOut, o, s)
	if err != nil {
		return explain(ctx, o, sum, err)
	}
	_, err = fmt.Fprintf(errOut, "exported %d likes and %d saves to %s in %.3f s\n",
		sum.ByCounter[likes.Likes], sum.ByCounter[likes.Saves], o.name(), time.Since(began).Seconds())
	return err
}

// exportTo writes to a file that appears when it is complete, or to out.
func exportTo(ctx context.Context, out, errOut io.Writer, o Options, s *source) (export.Summary, error) {
	if o.Path == "-" {
		return write(ctx, out, errOut, o, s)
	}
	file, err := export.Create(o.Path)
	if err != nil {
		return export.Summary{}, err
	}
	sum, err := write(ctx, file, errOut, o, s)
	if err != nil {
		return sum, errors.Join(err, file.Discard())
	}
	return sum, file.Commit()
}

func write(ctx context.Context, out, errOut io.Writer, o Options, s *source) (export.Summary, error) {
	pseudonyms, err := o.Pseudonymise.open(errOut)
	if err != nil {
		return export.Summary{}, err
	}
	work, err := export.New(s.walker, out, export.Config{
		Counter: o.Counter, User: o.User, Format: o.Format, Types: s.types, Pseudonyms: pseudonyms,
	})
	if err != nil {
		return export.Summary{}, err
	}
	bar := progress.Start(errOut, "edges", func() progress.Sample {
		done, total := work.Progress()
		return progress.Sample{Done: done, Total: total}
	})
	defer bar.Stop()
	return work.Run(ctx)
}

// explain says what is left of an export that failed, and what to do.
func explain(ctx context.Context, o Options, sum export.Summary, err error) error {
	left := "no file was written"
	if o.Path == "-" {
		left = fmt.Sprintf("standard output got a part, up to %d lines", sum.Edges)
	}
	left += "; the store is as it was, run it again"
	if ctx.Err() != nil {
		return cli.WithCode(cli.Interrupted, fmt.Errorf("interrupted; %s", left))
	}
	return fmt.Errorf("%w; %s", err, left)
}
