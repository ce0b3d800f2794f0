package ingest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"likectl/pkg/likes"
)

// The pauses between attempts double from one to the other, each with jitter.
const (
	minPause = 20 * time.Millisecond
	maxPause = 2 * time.Second
)

// applyAll applies a batch, repeating what the store refused or did not surely
// apply: replays may be repeated. A context that has ended lets the call in
// flight finish, since its outcome would be unknown otherwise, and ends repeats.
func (i *Import) applyAll(ctx context.Context, b *batch) error {
	rest := b.replays
	pause, since := minPause, time.Now()
	for {
		before := len(rest)
		var err error
		if rest, err = i.applyOnce(ctx, rest); err == nil {
			return nil
		}
		if !temporary(err) {
			return err
		}
		if len(rest) < before {
			pause, since = minPause, time.Now()
		}
		if time.Since(since) > i.config.RetryFor {
			return fmt.Errorf("gave up after %v: %w", i.config.RetryFor, err)
		}
		if len(rest) == before {
			why := err.Error()
			i.stalled.Store(&why)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
		pause = min(2*pause, maxPause)
	}
}

// applyOnce returns the replays that were not applied, in their order at the
// front of the same slice, and the gravest error among them.
func (i *Import) applyOnce(ctx context.Context, replays []likes.Mutation) ([]likes.Mutation, error) {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), i.config.CallTimeout)
	defer cancel()
	results := i.apply(call, replays)
	if len(results) != len(replays) {
		return replays, fmt.Errorf("%d answers to %d replays", len(results), len(replays))
	}
	var err error
	var sum Summary
	uncertain := false
	rest := replays[:0]
	for n, r := range results {
		if r.Err != nil {
			if err == nil || temporary(err) && !temporary(r.Err) {
				err = fmt.Errorf("%s: %w", i.name(replays[n].Edge), r.Err)
			}
			uncertain = uncertain || errors.Is(r.Err, likes.ErrUncertain)
			rest = append(rest, replays[n])
			continue
		}
		sum.count(r.Outcome)
	}
	i.done.Add(sum.Applied())
	if sum.Applied() > 0 {
		i.stalled.Store(nil)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.sum.Changed += sum.Changed
	i.sum.Unchanged += sum.Unchanged
	i.sum.Superseded += sum.Superseded
	i.sum.Accepted += sum.Accepted
	i.sum.Uncertain = i.sum.Uncertain || uncertain
	return rest, err
}

// name calls an edge what the file calls it.
func (i *Import) name(e likes.Edge) string {
	return fmt.Sprintf("%v of %s:%d by user %d", e.Counter, i.reader.types.Name(e.Item.Type), e.Item.ID, e.User)
}

func (s *Summary) count(o likes.Outcome) {
	switch o {
	case likes.Changed:
		s.Changed++
	case likes.Superseded:
		s.Superseded++
	case likes.Accepted:
		s.Accepted++
	case likes.Unchanged:
		s.Unchanged++
	}
}

// temporary says whether a repeat may succeed.
func temporary(err error) bool {
	return errors.Is(err, likes.ErrOverloaded) || errors.Is(err, likes.ErrUnavailable) || errors.Is(err, likes.ErrUncertain)
}
