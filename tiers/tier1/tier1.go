package tier1

import (
	"context"
	"errors"
	"sync"
	"time"

	"likectl/pkg/batch"
	"likectl/pkg/clock"
	"likectl/pkg/fold"
	"likectl/pkg/likes"
	"likectl/pkg/store"
)

// Config bounds the three batchers, and the memory of events.
type Config struct {
	Issue  batch.Config
	Replay batch.Config
	Tally  batch.Config
	// Retention is for how long an event of a tally is remembered, more than 0.
	// It must be longer than anybody repeats one: a retry, a spool, a mirror.
	Retention time.Duration
}

// The kinds of transactions.
const (
	Write  = "write"
	Replay = "replay"
	Add    = "add"
)

// Hooks lets measurements out. A nil function is not called.
type Hooks struct {
	// Flushed is called after every transaction of n mutations of a kind.
	Flushed func(kind string, n int, took time.Duration, err error)
	// Waited is called for every call of Apply and every transaction of a kind
	// that answered mutations of it, with the call's context and when they were
	// queued.
	Waited func(ctx context.Context, kind string, queued time.Time, f batch.Flight)
	// Forgot is called after every step that forgot n events of tallies.
	Forgot func(n int, took time.Duration, err error)
	// Wrote is called after every committed transaction of issued mutations with
	// what they folded into, in key order, and what became of it. Calls for one
	// lane follow each other, and those for a counter come from one lane; the
	// slices are the lane's and change when it returns.
	Wrote func(lane int, writes []store.Write, written []store.Written)
	// Answered is called with the mutations of every committed transaction,
	// issued ones and adds, and their results. The slices are the lane's too.
	Answered func(ms []likes.Mutation, results []likes.Result)
}

// Service is a tier 1 instance over one store.
type Service struct {
	store    Store
	clock    *clock.Clock
	hooks    Hooks
	contract likes.Contract

	issues, replays, adds *batch.Batcher[likes.Mutation, likes.Result]
	issueFolders          []fold.Folder // one per lane
	replayFolders         []fold.Folder
	tallyFolders          []fold.Tally
	scratch               sync.Pool // of *scratch

	stopForgetting context.CancelFunc
	forgetting     sync.WaitGroup
}

var _ likes.Service = (*Service)(nil)

// Start returns a service whose batchers run until Close. The store stays the
// caller's to close.
func Start(db Store, clk *clock.Clock, contract likes.Contract, cfg Config, hooks Hooks) (*Service, error) {
	for _, c := range []batch.Config{cfg.Issue, cfg.Replay, cfg.Tally} {
		if err := c.Validate(); err != nil {
			return nil, err
		}
	}
	if cfg.Retention <= 0 {
		return nil, likes.Errorf(likes.ErrInvalid, "retention is %v, want more than 0", cfg.Retention)
	}
	s := &Service{
		store: db, clock: clk, hooks: hooks, contract: contract,
		issueFolders: make([]fold.Folder, cfg.Issue.Lanes), replayFolders: make([]fold.Folder, cfg.Replay.Lanes),
		tallyFolders: make([]fold.Tally, cfg.Tally.Lanes),
	}
	s.scratch.New = func() any { return new(scratch) }
	for _, b := range []struct {
		kind    string
		batcher **batch.Batcher[likes.Mutation, likes.Result]
		cfg     batch.Config
		flush   batch.FlushFunc[likes.Mutation, likes.Result]
	}{
		{Write, &s.issues, cfg.Issue, s.issue}, {Replay, &s.replays, cfg.Replay, s.replay}, {Add, &s.adds, cfg.Tally, s.add},
	} {
		if hooks.Waited != nil {
			b.cfg.Observe = func(ctx context.Context, queued time.Time, f batch.Flight) { hooks.Waited(ctx, b.kind, queued, f) }
		}
		var err error
		if *b.batcher, err = batch.Start(b.cfg, b.flush); err != nil {
			return nil, err // not after the validation above
		}
	}
	ctx, stop := context.WithCancel(context.Background()) //nolint:forbidigo // forgetting is nobody's call; Close ends it
	s.stopForgetting = stop
	s.forgetting.Go(func() { s.forget(ctx, cfg.Retention) })
	return s, nil
}

// Close refuses new mutations and returns when all accepted ones are answered,
// or when the context ends.
func (s *Service) Close(ctx context.Context) error {
	s.stopForgetting()
	err := errors.Join(s.issues.Close(ctx), s.replays.Close(ctx), s.adds.Close(ctx))
	s.forgetting.Wait()
	return err
}

// Queued returns how many mutations wait for a transaction.
func (s *Service) Queued() int { return s.issues.Queued() + s.replays.Queued() + s.adds.Queued() }

// Contract implements [likes.Service].
func (s *Service) Contract() likes.Contract { return s.contract }

// scratch is what one Apply needs besides its answers.
type scratch struct {
	ops     []likes.Mutation
	at      []int // the position of each op among the mutations
	lanes   []int
	answers []batch.Answer[likes.Result]
}

// Apply implements [likes.Service].
func (s *Service) Apply(ctx context.Context, ms []likes.Mutation) []likes.Result {
	out := make([]likes.Result, len(ms))
	if err := likes.CheckApply(len(ms)); err != nil {
		for i := range out {
			out[i].Err = err
		}
		return out
	}
	sc := s.scratch.Get().(*scratch) //nolint:forcetypeassert // the pool holds nothing else
	for from := 0; from < len(ms); {
		from = s.applyRun(ctx, sc, ms, from, out)
	}
	s.scratch.Put(sc)
	return out
}

// applyRun performs the valid mutations from a position on, as long as they are
// of one kind, and returns where the next kind begins: a call that mixes kinds
// keeps its order.
func (s *Service) applyRun(ctx context.Context, sc *scratch, ms []likes.Mutation, from int, out []likes.Result) int {
	kind := kindOf(&ms[from])
	batcher, lanes := s.issues, len(s.issueFolders)
	switch kind {
	case Replay:
		batcher, lanes = s.replays, len(s.replayFolders)
	case Add:
		batcher, lanes = s.adds, len(s.tallyFolders)
	}
	sc.ops, sc.at, sc.lanes = sc.ops[:0], sc.at[:0], sc.lanes[:0]
	end := from
	for ; end < len(ms) && kindOf(&ms[end]) == kind; end++ {
		if err := ms[end].Validate(); err != nil {
			out[end].Err = err
			continue
		}
		sc.ops = append(sc.ops, ms[end])
		sc.at = append(sc.at, end)
		sc.lanes = append(sc.lanes, laneOf(ms[end].Edge.Item, lanes))
	}
	if cap(sc.answers) < len(sc.ops) {
		sc.answers = make([]batch.Answer[likes.Result], len(sc.ops))
	}
	sc.answers = sc.answers[:len(sc.ops)]
	batcher.Do(ctx, sc.ops, sc.lanes, sc.answers)
	for i, a := range sc.answers {
		if out[sc.at[i]] = a.Res; a.Err != nil {
			out[sc.at[i]] = likes.Result{Err: a.Err}
		}
	}
	return end
}

// kindOf returns the kind of transaction that performs a mutation.
func kindOf(m *likes.Mutation) string {
	switch {
	case m.Op == likes.Add:
		return Add
	case m.Fixed != 0:
		return Replay
	default:
		return Write
	}
}

// laneOf spreads items over lanes. All operations on an edge, and all that touch
// a counter, share a lane: in one process they never wait for each other's row
// locks. (The multiplier is 2^64 divided by the golden ratio; Knuth, TAOCP 6.4.)
func laneOf(item likes.Item, lanes int) int {
	h := (uint64(item.ID) ^ uint64(item.Type)<<48) * 0x9e3779b97f4a7c15
	return int((h >> 32) * uint64(lanes) >> 32)
}

func (s *Service) issue(ctx context.Context, lane int, ms []likes.Mutation, out []likes.Result) error {
	f := &s.issueFolders[lane]
	writes := f.Issue(ms, s.clock.Now)
	written := f.Written()
	if err := s.commit(ctx, store.Commit{Writes: writes}, written, len(ms)); err != nil {
		return err
	}
	if s.hooks.Wrote != nil {
		s.hooks.Wrote(lane, writes, written)
	}
	f.Issued(ms, written, s.clock.Time(), out)
	s.answered(ms, out)
	return nil
}

func (s *Service) replay(ctx context.Context, lane int, ms []likes.Mutation, out []likes.Result) error {
	f := &s.replayFolders[lane]
	writes := f.Replay(ms)
	written := f.Written()
	if err := s.commit(ctx, store.Commit{Replay: true, Writes: writes}, written, len(ms)); err != nil {
		return err
	}
	f.Replayed(ms, written, out)
	return nil
}

func (s *Service) commit(ctx context.Context, c store.Commit, written []store.Written, mutations int) error {
	kind := Write
	if c.Replay {
		kind = Replay
	}
	began := time.Now()
	err := commit(ctx, s.store, c, written)
	s.flushed(kind, mutations, began, err)
	return err
}

func (s *Service) flushed(kind string, n int, began time.Time, err error) {
	if s.hooks.Flushed != nil {
		s.hooks.Flushed(kind, n, time.Since(began), err)
	}
}

func (s *Service) answered(ms []likes.Mutation, out []likes.Result) {
	if s.hooks.Answered != nil {
		s.hooks.Answered(ms, out)
	}
}
