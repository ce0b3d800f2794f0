package erase

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"likectl/cmd/app"
	"likectl/cmd/cli"
	"likectl/pkg/erase"
	"likectl/pkg/export"
	"likectl/pkg/likes"
	"likectl/pkg/progress"
	"likectl/pkg/store"
)

// within opens the erasures for as long as do takes.
func within(ctx context.Context, o Options, do func(*app.Erasures) error) (err error) {
	e, err := app.OpenErasures(ctx, o.Config, o.Admin)
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	defer func() { err = errors.Join(err, e.Close(context.WithoutCancel(ctx))) }()
	return do(e)
}

// run erases or merges a user and prints the receipt.
func run(ctx context.Context, out, errOut io.Writer, o Options) error {
	return within(ctx, o, func(e *app.Erasures) error {
		if o.DryRun {
			return dryRun(ctx, out, o, e)
		}
		// A receipt that cannot be written is found out before anything is erased.
		var file *export.File
		if o.Receipt != "" {
			var err error
			if file, err = export.Create(o.Receipt); err != nil {
				return cli.Usagef("--receipt: %w; nothing was changed", err)
			}
		}
		receipt, err := eraseUser(ctx, errOut, o, e)
		if file != nil {
			err = save(file, receipt, err)
		}
		if err != nil {
			return err
		}
		return printReceipt(out, o.Output, receipt)
	})
}

// save completes the file with the receipt, or removes it if there is none.
func save(file *export.File, receipt erase.Receipt, err error) error {
	if err == nil {
		err = writeJSON(file, receipt)
		if err == nil {
			err = file.Commit()
		} else {
			err = errors.Join(err, file.Discard())
		}
		if err != nil {
			return fmt.Errorf("the user is erased, but the receipt was not written; run the command again to get it: %w", err)
		}
		return nil
	}
	return errors.Join(err, file.Discard())
}

// eraseUser works until the user is erased and returns the receipt.
func eraseUser(ctx context.Context, errOut io.Writer, o Options, e *app.Erasures) (erase.Receipt, error) {
	left, err := e.Remains(ctx, o.User)
	if err != nil {
		return erase.Receipt{}, fmt.Errorf("nothing was changed: %w", err)
	}
	work, err := erase.New(e, erase.Config{Users: []likes.UserID{o.User}, Into: o.Into, PerSecond: o.PerSecond},
		func(likes.UserID, store.Erasure) error { return nil })
	if err != nil {
		return erase.Receipt{}, cli.WithCode(cli.Usage, err)
	}
	began := time.Now()
	bar := progress.Start(errOut, "rows", func() progress.Sample {
		rows, _ := work.Progress()
		return progress.Sample{Done: rows, Total: left.Edges + left.Tombstones + left.Relations}
	})
	sum, err := work.Run(ctx)
	bar.Stop()
	if err != nil {
		return erase.Receipt{}, broken(ctx, sum, err)
	}
	took := time.Since(began).Seconds()
	text := fmt.Sprintf("erased %s of user %d in %s, in %.3f s", cli.Count(sum.Rows(), "row"), o.User, e.Name, took)
	switch {
	case sum.Already > 0 && o.Into != 0:
		text = fmt.Sprintf("user %d was merged before; nothing was changed, of user %d neither", o.User, o.Into)
	case sum.Already > 0:
		text = fmt.Sprintf("user %d was erased before; nothing was changed", o.User)
	case o.Into != 0:
		text = fmt.Sprintf("moved %s of user %d to user %d in %s, in %.3f s", cli.Count(sum.Rows(), "row"), o.User, o.Into, e.Name, took)
	}
	if _, err := fmt.Fprintln(errOut, text); err != nil {
		return erase.Receipt{}, err
	}
	receipt, err := e.Receipt(ctx, o.User)
	if err != nil {
		return receipt, fmt.Errorf("the user is erased, but the receipt was not read; run the command again to get it: %w", err)
	}
	return receipt, nil
}

// broken says what an erasure that broke off means and how to go on.
func broken(ctx context.Context, sum erase.Summary, err error) error {
	left := fmt.Sprintf("%s gone, and nothing new is applied for the users named once their erasure has begun; "+
		"run it again to go on, see likectl erase status", cli.Count(sum.Rows(), "row"))
	switch {
	case ctx.Err() != nil:
		return cli.WithCode(cli.Interrupted, fmt.Errorf("interrupted: %s", left))
	case errors.Is(err, likes.ErrInvalid):
		return cli.WithCode(cli.Usage, err)
	default:
		return fmt.Errorf("%w; %s", err, left)
	}
}

func verify(ctx context.Context, out, _ io.Writer, o Options) error {
	var receipt *erase.Receipt
	if o.Receipt != "" {
		r, err := readReceipt(o.Receipt)
		if err != nil {
			return cli.Usagef("--receipt %s: %w", o.Receipt, err)
		}
		receipt = &r
	}
	return within(ctx, o, func(e *app.Erasures) error {
		found, err := e.Verify(ctx, o.User, receipt)
		if err != nil {
			return err
		}
		if err := printFindings(out, o, e.Name, found); err != nil {
			return err
		}
		if len(found) > 0 {
			return cli.WithCode(cli.Difference, notErased(o.User, found[0]))
		}
		return nil
	})
}

// notErased says what the first finding means and what to do. Whoever mistyped the
// id must not be told to erase a user of whom nobody asked it: an erasure cannot be
// undone.
func notErased(user likes.UserID, first erase.Finding) error {
	switch first.What {
	case "record":
		return fmt.Errorf("user %d is not erased: %s; check the id and which store was asked; "+
			"`likectl erase --user %d --dry-run` says what there is of the user", user, first.Text, user)
	case "signature", "receipt":
		return fmt.Errorf("user %d is erased and no row is left, but %s; check which file is the user's; "+
			"`likectl erase --user %d --receipt FILE` writes the store's receipt again and changes nothing else", user, first.Text, user)
	default:
		return fmt.Errorf("user %d is not erased as it should be: %s; go on with `likectl erase --user %d`", user, first.Text, user)
	}
}

func readReceipt(path string) (erase.Receipt, error) {
	f, err := os.Open(path)
	if err != nil {
		return erase.Receipt{}, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return erase.ReadReceipt(f)
}

func status(ctx context.Context, out, _ io.Writer, o Options) error {
	return within(ctx, o, func(e *app.Erasures) error {
		users, err := e.Unfinished(ctx, store.MaxErase)
		if err != nil {
			return err
		}
		list := make([]unfinished, 0, len(users))
		for _, u := range users {
			at, begun, err := e.Erasure(ctx, u)
			if err != nil {
				return err
			}
			if begun && at.Finished.IsZero() { // it may have ended just now
				list = append(list, newUnfinished(u, at))
			}
		}
		return printStatus(out, o.Output, e.Name, list)
	})
}

func resume(ctx context.Context, out, errOut io.Writer, o Options) error {
	return within(ctx, o, func(e *app.Erasures) error {
		var users atomic.Int64
		bar := progress.Start(errOut, "users", func() progress.Sample { return progress.Sample{Done: users.Load()} })
		sum, err := erase.Resume(ctx, e, o.PerSecond, func(likes.UserID, store.Erasure) error { users.Add(1); return nil })
		bar.Stop()
		if err != nil {
			return broken(ctx, sum, err)
		}
		return PrintSummary(out, o.Output, e.Name, sum)
	})
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
