package abuse

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"likectl/pkg/likes"
	"likectl/pkg/reload"
)

// ErrRefused is returned where the list or the scorer refuses the attempt. Which of
// them is not told to who is refused.
var ErrRefused = errors.New("refused")

// LimitError says that a velocity limit is used up.
type LimitError struct {
	// Limit is the name of the limit, one of [Reasons].
	Limit string
	// RetryAfter is the time until the attempt can pass.
	RetryAfter time.Duration
}

// Error names the limit.
func (e *LimitError) Error() string { return "the velocity limit " + e.Limit + " is used up" }

// Why an attempt is refused, in metrics.
const (
	reasonList        = "list"
	reasonUserOwner   = "user_owner"
	reasonItem        = "item"
	reasonIP          = "ip"
	reasonDevice      = "device"
	reasonScorer      = "scorer"
	reasonScorerError = "scorer_error"
)

// Reasons returns why an attempt can be refused, as [Hooks].Refused is told:
// "list", "scorer", "scorer_error" for a scorer that did not answer, and the
// velocity limits by their names.
func Reasons() []string {
	return []string{reasonList, reasonUserOwner, reasonItem, reasonIP, reasonDevice, reasonScorer, reasonScorerError}
}

// Attempt is a like or save that somebody asks for.
type Attempt struct {
	Edge likes.Edge
	// Addr is the client's address and Network the key of those that are limited
	// as one. Both are zero where the client is a backend that acts for others.
	Addr    netip.Addr
	Network string
	// Device is zero if the client did not name one.
	Device Device
}

// OwnerFunc returns the owners of items by position, 0 for an item without one
// and for one that the caller must not know of. Its error is one of pkg/likes.
type OwnerFunc func(ctx context.Context, items []likes.Item) ([]likes.UserID, error)

// Config is what the guard holds attempts against. Everything may be left out
// but Refresh and Log.
type Config struct {
	Velocity Velocity
	// List is the file of the reputation list. What it slows has velocity limits
	// divided by SlowFactor, at least 1 call in the window.
	List       string
	SlowFactor int
	Scorer     Scorer
	// Batch says that entries of batches are checked too, but for the scorer.
	Batch bool
	// Refresh is how often the files are read again.
	Refresh time.Duration
	// Types are the names that the scorer is told.
	Types likes.ItemTypes
	Hooks Hooks
	Log   *slog.Logger
}

// Hooks are told what happens, where they are set.
type Hooks struct {
	// Refused is told why an attempt is refused, one of [Reasons].
	Refused func(reason string)
	// Scored is told how each question to the scorer ended, one of [Results].
	Scored func(result string)
	// Read is told of every reading of a file, "list" or "token", maybe of both at
	// once.
	Read func(file string, err error)
}

// Empty says that nothing is configured: no guard is needed.
func (c Config) Empty() bool {
	return c.List == "" && c.Scorer.URL == "" && c.Velocity.empty()
}

// Guard decides about attempts. It is safe for concurrent use.
type Guard struct {
	cfg    Config
	scorer *scorer // nil: none
	list   atomic.Pointer[list]
	file   *reload.File // of the list; nil: none

	mu      sync.Mutex // looking at all limits of an attempt and taking of them is one step
	buckets buckets
}

// Open returns a guard that keeps up with its files until Close, or ErrInvalid
// that names the value, or the file and line, that is wrong.
func Open(ctx context.Context, cfg Config) (*Guard, error) {
	if cfg.Refresh <= 0 {
		return nil, likes.Errorf(likes.ErrInvalid, "files are read every %v, want more than 0", cfg.Refresh)
	}
	if cfg.SlowFactor < 2 && cfg.List != "" {
		return nil, likes.Errorf(likes.ErrInvalid, "slow factor %d, want at least 2", cfg.SlowFactor)
	}
	g := &Guard{cfg: cfg}
	var err error
	if g.buckets, err = newBuckets(cfg.Velocity, max(cfg.SlowFactor, 1)); err != nil {
		return nil, err
	}
	if cfg.Scorer.URL != "" {
		if g.scorer, err = openScorer(ctx, &g.cfg); err != nil {
			return nil, err
		}
	}
	if cfg.List == "" {
		g.list.Store(&list{})
		return g, nil
	}
	g.file, err = reload.Open(ctx, reload.Config{
		Name: "list file", Path: cfg.List, MaxBytes: maxList, Every: cfg.Refresh, Use: g.useList, Read: cfg.read("list"), Log: cfg.Log,
	})
	if err != nil {
		return nil, errors.Join(err, g.Close(ctx))
	}
	return g, nil
}

// read returns the hook of one file's readings.
func (c *Config) read(file string) func(error) {
	if c.Hooks.Read == nil {
		return nil
	}
	return func(err error) { c.Hooks.Read(file, err) }
}

// useList puts a list in force.
func (g *Guard) useList(doc []byte) error {
	l, err := parseList(doc)
	if err != nil {
		return err
	}
	if g.list.Swap(l) != nil {
		g.cfg.Log.Info("the reputation list changed", "entries", l.size())
	}
	return nil
}

// Close ends the reading of files and the connections to the scorer.
func (g *Guard) Close(context.Context) error {
	g.file.Close()
	if g.scorer != nil {
		g.scorer.service.Close()
	}
	return nil
}

// Batch says whether entries of batches are to be checked.
func (g *Guard) Batch() bool { return g.cfg.Batch }

// Check returns nil if the attempt may go on. Otherwise it returns ErrRefused, a
// *LimitError, likes.ErrUnavailable if the scorer must answer and does not, or
// what owners, which may be nil, returned.
func (g *Guard) Check(ctx context.Context, a Attempt, owners OwnerFunc) error {
	standing := g.list.Load().of(a)
	if standing == denied {
		return g.refuse(reasonList, ErrRefused)
	}
	var owner likes.UserID
	if owners != nil && g.buckets.userOwner != nil {
		of, err := ask(ctx, []likes.Item{a.Edge.Item}, owners)
		if err != nil {
			return err
		}
		owner = of[0]
	}
	keys := g.buckets.keys(a, owner, standing == slowed)
	if g.scorer != nil {
		// A scorer need not be asked about what a limit refuses, and what the
		// scorer refuses must not use up a limit.
		if err := g.look(ctx, keys); err != nil {
			return err
		}
		if err := g.score(ctx, a); err != nil {
			return err
		}
	}
	return g.take(ctx, keys)
}

// CheckBatch is Check for the entries of a batch, one after the other, by
// position. The scorer is not asked: a batch is a backend's, which can ask for
// all of them at once.
func (g *Guard) CheckBatch(ctx context.Context, as []Attempt, owners OwnerFunc) []error {
	errs, of := make([]error, len(as)), make([]likes.UserID, len(as))
	var err error
	if owners != nil && g.buckets.userOwner != nil && len(as) > 0 {
		items := make([]likes.Item, len(as))
		for i, a := range as {
			items[i] = a.Edge.Item
		}
		of, err = ask(ctx, items, owners)
	}
	known := g.list.Load()
	for i, a := range as {
		switch standing := known.of(a); {
		case standing == denied:
			errs[i] = g.refuse(reasonList, ErrRefused)
		case err != nil:
			errs[i] = err
		default:
			errs[i] = g.take(ctx, g.buckets.keys(a, of[i], standing == slowed))
		}
	}
	return errs
}

// ask asks whose the items are.
func ask(ctx context.Context, items []likes.Item, owners OwnerFunc) ([]likes.UserID, error) {
	of, err := owners(ctx, items)
	if err != nil {
		return nil, fmt.Errorf("owners for the limit %s: %w", reasonUserOwner, err)
	}
	if len(of) != len(items) {
		return nil, fmt.Errorf("owners for the limit %s: %d of %d items", reasonUserOwner, len(of), len(items))
	}
	return of, nil
}

// look returns the LimitError of an attempt that could not take its keys now.
func (g *Guard) look(ctx context.Context, keys []key) error {
	var refused LimitError
	for _, k := range keys {
		d, err := k.limiter.Look(ctx, k.key)
		if err != nil {
			return fmt.Errorf("limit %s: %w", k.name, err)
		}
		if !d.Allowed && d.RetryAfter > refused.RetryAfter {
			refused = LimitError{k.name, d.RetryAfter}
		}
	}
	if refused.Limit != "" {
		return g.refuse(refused.Limit, &refused)
	}
	return nil
}

// take takes one of each key, or none.
func (g *Guard) take(ctx context.Context, keys []key) error {
	if len(keys) == 0 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.look(ctx, keys); err != nil {
		return err
	}
	for _, k := range keys {
		if _, err := k.limiter.Take(ctx, k.key); err != nil {
			return fmt.Errorf("limit %s: %w", k.name, err)
		}
	}
	return nil
}

func (g *Guard) refuse(reason string, err error) error {
	if g.cfg.Hooks.Refused != nil {
		g.cfg.Hooks.Refused(reason)
	}
	return err
}
