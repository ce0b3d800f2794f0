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

// Config bounds the two batchers.
type Config struct {
	Issue  batch.Config
	Replay batch.Config
}

// Hooks lets measurements out. A nil function is not called.
type Hooks struct {
	// Flushed is called after every transaction of n mutations.
	Flushed func(replay bool, n int, took time.Duration, err error)
}

// Service is a tier 1 instance over one store.
type Service struct {
	edges    store.Edges
	clock    *clock.Clock
	hooks    Hooks
	contract likes.Contract

	issues, replays *batch.Batcher[likes.Mutation, likes.Result]
	issueFolders    []fold.Folder // one per lane
	replayFolders   []fold.Folder
	scratch         sync.Pool // of *scratch
}

var _ likes.Service = (*Service)(nil)

// Start returns a service whose batchers run until Close. The store stays the
// caller's to close.
func Start(edges store.Edges, clk *clock.Clock, contract likes.Contract, cfg Config, hooks Hooks) (*Service, error) {
	s := &Service{
		edges: edges, clock: clk, hooks: hooks, contract: contract,
		issueFolders: make([]fold.Folder, max(cfg.Issue.Lanes, 0)), replayFolders: make([]fold.Folder, max(cfg.Replay.Lanes, 0)),
	}
	s.scratch.New = func() any { return new(scratch) }
	var err error
	if s.issues, err = batch.Start(cfg.Issue, s.issue); err != nil {
		return nil, err
	}
	if s.replays, err = batch.Start(cfg.Replay, s.replay); err != nil {
		return nil, errors.Join(err, s.issues.Close(context.Background())) //nolint:forbidigo // nothing is queued yet
	}
	return s, nil
}

// Close refuses new mutations and returns when all accepted ones are answered,
// or when the context ends.
func (s *Service) Close(ctx context.Context) error {
	return errors.Join(s.issues.Close(ctx), s.replays.Close(ctx))
}

// Queued returns how many mutations wait for a transaction.
func (s *Service) Queued() int { return s.issues.Queued() + s.replays.Queued() }

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
	replay := ms[from].Fixed != 0
	batcher, lanes := s.issues, len(s.issueFolders)
	if replay {
		batcher, lanes = s.replays, len(s.replayFolders)
	}
	sc.ops, sc.at, sc.lanes = sc.ops[:0], sc.at[:0], sc.lanes[:0]
	end := from
	for ; end < len(ms) && (ms[end].Fixed != 0) == replay; end++ {
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
	f.Issued(ms, written, s.clock.Time(), out)
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
	began := time.Now()
	err := commit(ctx, s.edges, c, written)
	if s.hooks.Flushed != nil {
		s.hooks.Flushed(c.Replay, mutations, time.Since(began), err)
	}
	return err
}
