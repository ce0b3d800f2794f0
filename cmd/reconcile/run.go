package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"likectl/cmd/app"
	"likectl/cmd/cli"
	"likectl/pkg/likes"
	"likectl/pkg/progress"
	"likectl/pkg/reconcile"
	"likectl/pkg/store"
)

// walker runs a walk, here or in a server. While it runs, where it is stands in
// at.
type walker func(ctx context.Context, c reconcile.Config, at *position, found func(reconcile.Found) error) (reconcile.Summary, error)

// position is where a walk is: counters compared, and about how many there are.
type position struct {
	read atomic.Pointer[func() (checked, estimate int64)]
}

func (p *position) follow(read func() (checked, estimate int64)) { p.read.Store(&read) }

func (p *position) sample() progress.Sample {
	read := p.read.Load()
	if read == nil {
		return progress.Sample{}
	}
	checked, estimate := (*read)()
	return progress.Sample{Done: checked, Total: estimate}
}

// target is whose counters are compared.
type target struct {
	name  string
	types likes.ItemTypes
	walk  walker
	close func(context.Context) error
}

func open(ctx context.Context, o Options) (*target, error) {
	if o.Admin != "" {
		return openAdmin(ctx, o)
	}
	types, err := o.Config.ItemTypes()
	if err != nil {
		return nil, err
	}
	tier, err := app.OpenExisting(ctx, o.Config)
	if err != nil {
		return nil, err
	}
	return &target{name: tier.Backend, types: types, walk: walkHere(tier.Auditor), close: tier.Close}, nil
}

func openAdmin(ctx context.Context, o Options) (*target, error) {
	client, types, err := app.AskServer(ctx, o.Config, o.Admin)
	if err != nil {
		return nil, err
	}
	return &target{
		name:  "the server at " + o.Admin,
		types: types,
		walk: func(ctx context.Context, c reconcile.Config, at *position, found func(reconcile.Found) error) (reconcile.Summary, error) {
			return client.Reconcile(ctx, c, func(checked, estimate int64) {
				at.follow(func() (int64, int64) { return checked, estimate })
			}, found)
		},
		close: func(context.Context) error { client.Close(); return nil },
	}, nil
}

// walkHere walks in this process.
func walkHere(a store.Auditor) walker {
	return func(ctx context.Context, c reconcile.Config, at *position, found func(reconcile.Found) error) (reconcile.Summary, error) {
		walk, err := reconcile.New(a, c, found)
		if err != nil {
			return reconcile.Summary{}, err
		}
		at.follow(walk.Progress)
		return walk.Run(ctx)
	}
}

// run walks and prints what was found, also when it fails half-way.
func run(ctx context.Context, out, errOut io.Writer, o Options) (err error) {
	t, err := open(ctx, o)
	if err != nil {
		return fmt.Errorf("no counter was compared: %w", err)
	}
	defer func() { err = errors.Join(err, t.close(context.WithoutCancel(ctx))) }()
	return walkAndPrint(ctx, out, errOut, o, t)
}

func walkAndPrint(ctx context.Context, out, errOut io.Writer, o Options, t *target) error {
	config := reconcile.Config{DryRun: o.DryRun, PerSecond: o.PerSecond}
	for _, text := range o.Items {
		item, err := parseItem(text, t.types)
		if err != nil {
			return err
		}
		config.Keys = append(config.Keys, store.Key{Counter: o.Counter, Item: item})
	}
	var at position
	began := time.Now()
	bar := progress.Start(errOut, "counters", at.sample)
	p := newPrinter(out, o, t)
	if err := p.begin(); err != nil {
		return err
	}
	sum, err := t.walk(ctx, config, &at, p.found)
	bar.Stop()
	if perr := p.summary(sum, time.Since(began), err == nil); perr != nil && err == nil {
		err = perr
	}
	return verdict(o, sum, err)
}

// verdict is the command's error, with its exit code.
func verdict(o Options, sum reconcile.Summary, err error) error {
	kept := "what was repaired stays repaired"
	if o.DryRun {
		kept = "nothing was changed (dry run)"
	}
	switch left := sum.Drifted - sum.Repaired; {
	case errors.Is(err, context.Canceled):
		return cli.WithCode(cli.Interrupted, fmt.Errorf(
			"interrupted after %s; %s, run it again for the rest", cli.Count(sum.Checked, "counter"), kept))
	case err != nil:
		return fmt.Errorf("stopped after %s; %s, run it again for the rest: %w", cli.Count(sum.Checked, "counter"), kept, err)
	case o.DryRun && left > 0:
		return cli.WithCode(cli.Difference, fmt.Errorf(
			"%d of %s differ from their likes; nothing was changed, repair them with --all", left, cli.Count(sum.Checked, "counter")))
	case left > 0:
		return fmt.Errorf("%s differ again after three repairs: something changes counters or edges behind the service's back", cli.Count(left, "counter"))
	default:
		return nil
	}
}
