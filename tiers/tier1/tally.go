package tier1

import (
	"context"
	"time"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

// add flushes a lane's Adds. Issued and replayed ones are the same keyed add, so
// they share a batch.
func (s *Service) add(ctx context.Context, lane int, ms []likes.Mutation, out []likes.Result) error {
	f := &s.tallyFolders[lane]
	adds := f.Fold(ms, s.clock.Time())
	added := f.Added()
	began := time.Now()
	err := s.store.Add(ctx, adds, added)
	s.flushed(Add, len(ms), began, err)
	if err != nil {
		return err
	}
	f.Results(ms, added, s.clock.Time(), out)
	s.answered(ms, out)
	return nil
}

const (
	// forgetStep is how many events one transaction forgets: a few milliseconds.
	forgetStep = 2000
	// forgetEvery is the longest pause while there is nothing to forget.
	forgetEvery = time.Minute
	// forgetParts divides a short retention into pauses.
	forgetParts = 10
)

// forget removes the events that are older than the retention until the context
// ends. While there are many it rests as long as each step took, so that writers
// have the store half of the time at least. Every instance does so; together they
// forget faster and never the same event.
//
// A failed step costs nothing but disk: its events stay for the next one.
func (s *Service) forget(ctx context.Context, retention time.Duration) {
	pause := max(min(forgetEvery, retention/forgetParts), time.Millisecond)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		n, err := s.store.Forget(ctx, s.clock.Time().Add(-retention), forgetStep)
		took := time.Since(began)
		if ctx.Err() != nil {
			return
		}
		if s.hooks.Forgot != nil {
			s.hooks.Forgot(n, took, err)
		}
		rest := pause
		if err == nil && n == forgetStep {
			rest = took
		}
		timer.Reset(rest)
	}
}

// Store is what the tier asks of its one database.
type Store interface {
	store.Edges
	store.Tallies
}
