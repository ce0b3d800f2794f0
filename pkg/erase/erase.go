// Package erase takes users out of the counts, or merges them into others, and
// proves it with receipts.
//
// [store.People] says how a store does it: the erasure is recorded first, and from
// then on nothing is applied for the user, whatever comes and from where. What the
// user has is removed afterwards, in steps that each leave counters equal to edges.
// So there is no moment at which somebody has to stop: an erasure that broke off is
// incomplete, never wrong, and running it again goes on.
//
// The work here is paced, and its steps are short, so that other users, whose
// items it locks for a moment, do not notice.
package erase

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"likectl/pkg/likes"
	"likectl/pkg/pace"
	"likectl/pkg/retry"
	"likectl/pkg/store"
)

// The bounds of the work.
const (
	// DefaultPerSecond leaves most of a small database's time to its users: a
	// user with a million likes takes 200 s, or longer on a slow one.
	DefaultPerSecond = 5000
	// MaxPerSecond is more than any store can do: the work is not paced.
	MaxPerSecond = 10_000_000
	// MaxUsers is how many users can be named at once.
	MaxUsers = 1_000_000

	// stepTime is how long a step should hold its locks: little beside the flush
	// that every like waits for anyway.
	stepTime = 10 * time.Millisecond
	// A step has at least minStep rows, since each ends with a flush of its own,
	// and the first one firstStep.
	minStep   = 50
	firstStep = 200
	// rest is how many times as long as a step others have the store to
	// themselves after it: the rate alone would not leave them any of a slow one.
	rest = 2
)

// Store is what the work asks of a store; [store.People] has it.
type Store interface {
	BeginErase(ctx context.Context, users []likes.UserID, into likes.UserID) error
	StepErase(ctx context.Context, user likes.UserID, limit int) (store.Erasure, error)
	Erasure(ctx context.Context, user likes.UserID) (store.Erasure, bool, error)
	Unfinished(ctx context.Context, limit int) ([]likes.UserID, error)
	Remains(ctx context.Context, user likes.UserID) (store.Remains, error)
}

// Config says who is erased and how fast.
type Config struct {
	// Users are 1 to MaxUsers users, none of them twice.
	Users []likes.UserID
	// Into receives what the one user named has; 0: it is erased.
	Into likes.UserID
	// Begun: the erasures are recorded already and only to be gone on with,
	// whatever they are into.
	Begun bool
	// PerSecond bounds how many rows are removed in a second, 1 to MaxPerSecond.
	PerSecond int
}

// Validate returns ErrInvalid that names what is out of range.
func (c Config) Validate() error {
	switch n := len(c.Users); {
	case n < 1 || n > MaxUsers:
		return likes.Errorf(likes.ErrInvalid, "%d users, want 1 to %d", n, MaxUsers)
	case c.PerSecond < 1 || c.PerSecond > MaxPerSecond:
		return likes.Errorf(likes.ErrInvalid, "%d rows per second, want 1 to %d", c.PerSecond, MaxPerSecond)
	case c.Into < 0:
		return likes.Errorf(likes.ErrInvalid, "user %d to merge into, want an id above 0", c.Into)
	case c.Into != 0 && (n != 1 || c.Begun):
		return likes.Errorf(likes.ErrInvalid, "one user can be merged into another at a time")
	case c.Into != 0 && c.Into == c.Users[0]:
		return likes.Errorf(likes.ErrInvalid, "user %d cannot be merged into itself", c.Into)
	}
	for i, u := range c.Users {
		if u < 1 {
			return likes.Errorf(likes.ErrInvalid, "users[%d] is %d, want an id above 0", i, u)
		}
	}
	return nil
}

// Summary is what a run did.
type Summary struct {
	// Users whose erasure this run has brought to its end, and Already those whose
	// had ended before.
	Users, Already int64
	// Removed are the rows that went away, or to the other user, during the run.
	Removed store.Remains
}

// Rows is the number of rows removed.
func (s Summary) Rows() int64 { return s.Removed.Edges + s.Removed.Tombstones + s.Removed.Relations }

// Work is one run over some users. It runs once.
type Work struct {
	store  Store
	config Config
	ended  func(likes.UserID, store.Erasure) error
	pacer  *pace.Pacer
	size   int // of the next step
	sum    Summary
	rows   atomic.Int64
	users  atomic.Int64
}

// New returns work that is ready to run, or ErrInvalid. ended is called for every
// user whose erasure has ended, now or before; its error ends the work.
func New(s Store, c Config, ended func(likes.UserID, store.Erasure) error) (*Work, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Work{store: s, config: c, ended: ended, size: min(firstStep, c.PerSecond)}, nil
}

// Progress returns how many rows have been removed and how many users are done.
// It may be called while the work runs.
func (w *Work) Progress() (rows, users int64) { return w.rows.Load(), w.users.Load() }

// Run works until all users are erased, or until an error or the context's end,
// and returns what it did so far in any case. No user gets anything applied from
// the moment on that all are recorded, which is before the first row goes.
func (w *Work) Run(ctx context.Context) (Summary, error) {
	if !w.config.Begun {
		for from := 0; from < len(w.config.Users); from += store.MaxErase {
			users := w.config.Users[from:min(from+store.MaxErase, len(w.config.Users))]
			err := retry.Do(ctx, func() error { return w.store.BeginErase(ctx, users, w.config.Into) })
			if err != nil {
				return w.sum, fmt.Errorf("begin erasures: %w", err)
			}
		}
	}
	w.pacer = pace.New(w.config.PerSecond)
	for _, u := range w.config.Users {
		if err := w.user(ctx, u); err != nil {
			return w.sum, err
		}
		w.users.Add(1)
	}
	return w.sum, nil
}

// user brings one user's erasure to its end.
func (w *Work) user(ctx context.Context, u likes.UserID) error {
	var at store.Erasure
	err := retry.Do(ctx, func() error {
		var begun bool
		var err error
		at, begun, err = w.store.Erasure(ctx, u)
		if err == nil && !begun {
			err = likes.Errorf(likes.ErrInvalid, "no erasure of this user has begun")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("read an erasure: %w", err)
	}
	if !at.Finished.IsZero() {
		w.sum.Already++
		return w.ended(u, at)
	}
	for at.Finished.IsZero() {
		began := time.Now()
		now, took, err := w.step(ctx, u)
		if err != nil {
			return fmt.Errorf("erase user %v: %w", at.User, err)
		}
		n := w.count(at, now)
		at = now
		// A user without rows costs a transaction too.
		if err := w.pacer.Wait(ctx, max(1, n)); err != nil {
			return err
		}
		if err := w.rest(ctx, time.Since(began), took); err != nil {
			return err
		}
	}
	w.sum.Users++
	return w.ended(u, at)
}

// step removes some rows, in the time that it returns, and fits the size of the
// next step to it.
func (w *Work) step(ctx context.Context, u likes.UserID) (now store.Erasure, took time.Duration, err error) {
	// Not more than the rate allows in a second, so that rows never go in bursts.
	least, most := min(minStep, w.config.PerSecond), min(2*w.size, w.config.PerSecond, store.MaxErase)
	err = retry.Do(ctx, func() error {
		began := time.Now()
		// Repeating is safe: a row that is gone is not removed again.
		now, err = w.store.StepErase(ctx, u, w.size)
		took = time.Since(began)
		if err != nil {
			w.size = max(least, w.size/4) // it may be too much for the store's limits
		}
		return err
	})
	fit := int(int64(w.size) * int64(stepTime) / int64(max(took, time.Microsecond)))
	w.size = max(least, min(fit, most))
	return now, took, err
}

// rest waits until enough time has passed since the beginning of a step that took
// its time.
func (w *Work) rest(ctx context.Context, passed, took time.Duration) error {
	if w.config.PerSecond == MaxPerSecond {
		return ctx.Err()
	}
	return retry.Sleep(ctx, (1+rest)*took-passed)
}

// count adds what a step removed to the sums.
func (w *Work) count(before, now store.Erasure) int {
	edges, tombstones, relations := now.Edges-before.Edges, now.Tombstones-before.Tombstones, now.Relations-before.Relations
	w.sum.Removed.Edges += edges
	w.sum.Removed.Tombstones += tombstones
	w.sum.Removed.Relations += relations
	n := edges + tombstones + relations
	w.rows.Add(n)
	return int(n)
}

// Resume goes on with what is unfinished, whoever began it, until nothing is, and
// calls ended for each user.
func Resume(ctx context.Context, s Store, perSecond int, ended func(likes.UserID, store.Erasure) error) (Summary, error) {
	var all Summary
	for {
		var users []likes.UserID
		err := retry.Do(ctx, func() (err error) { users, err = s.Unfinished(ctx, store.MaxErase); return err })
		if err != nil || len(users) == 0 {
			return all, err
		}
		w, err := New(s, Config{Users: users, Begun: true, PerSecond: perSecond}, ended)
		if err != nil {
			return all, err
		}
		sum, err := w.Run(ctx)
		all.Users += sum.Users
		all.Already += sum.Already
		all.Removed.Edges += sum.Removed.Edges
		all.Removed.Tombstones += sum.Removed.Tombstones
		all.Removed.Relations += sum.Removed.Relations
		if err != nil {
			return all, err
		}
	}
}
