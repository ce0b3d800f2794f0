package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"likectl/pkg/likes"
)

// ApplyFunc applies up to [likes.MaxApply] replays, as [likes.Service] does.
type ApplyFunc func(context.Context, []likes.Mutation) []likes.Result

// Config says how an import runs.
type Config struct {
	// Batch is the number of replays in a call, 1 to likes.MaxApply.
	Batch int
	// Lanes is the number of calls in flight, 1 to 64. All lines of an item take
	// the same lane, so that lanes never wait for each other's rows.
	Lanes int
	// Skip goes on behind bad lines instead of stopping at the first.
	Skip bool
	// CallTimeout bounds one call.
	CallTimeout time.Duration
	// RetryFor is how long a batch is repeated while the store is away or
	// overloaded and none of it gets through.
	RetryFor time.Duration
}

// DefaultConfig returns what imports use unless told otherwise: full batches,
// four in flight, so that the next ones wait in the server when a flush ends.
func DefaultConfig() Config {
	return Config{Batch: likes.MaxApply, Lanes: 4, CallTimeout: time.Minute, RetryFor: 2 * time.Minute}
}

const maxLanes = 64

func (c Config) validate() error {
	switch {
	case c.Batch < 1 || c.Batch > likes.MaxApply:
		return likes.Errorf(likes.ErrInvalid, "batch of %d lines, want 1 to %d", c.Batch, likes.MaxApply)
	case c.Lanes < 1 || c.Lanes > maxLanes:
		return likes.Errorf(likes.ErrInvalid, "%d batches in flight, want 1 to %d", c.Lanes, maxLanes)
	case c.CallTimeout <= 0 || c.RetryFor <= 0:
		return likes.Errorf(likes.ErrInvalid, "the timeout of a call and the time of retries must be positive")
	default:
		return nil
	}
}

// Summary is what an import did.
type Summary struct {
	// Lines is the number of likes and unlikes read.
	Lines int64
	// The outcomes of those that were applied. A batch that was repeated after
	// an uncertain answer reports what the repeat did.
	Changed, Unchanged, Superseded, Accepted int64
	// Skipped is the number of bad lines, and Bad the first MaxBad of them.
	Skipped int64
	Bad     []*LineError
	// Through is the last line with which all lines so far have been applied. It
	// is below the last line read only if applying failed.
	Through int64
	// Uncertain: the answers to some lines said that they may have been applied.
	Uncertain bool
}

// Applied is the number of lines that were applied.
func (s Summary) Applied() int64 { return s.Changed + s.Unchanged + s.Superseded + s.Accepted }

// MaxBad is the number of skipped lines that a Summary keeps.
const MaxBad = 20

// Import applies what a Reader reads. It runs once.
type Import struct {
	reader *Reader
	apply  ApplyFunc
	config Config
	lanes  []lane
	done   atomic.Int64
	// stalled is why lines are repeated, nil while some get through.
	stalled atomic.Pointer[string]

	mu     sync.Mutex // guards what follows
	sum    Summary
	failed error
	lost   int64 // the first line of the batches that were not applied; 0: none
}

// lane is a queue of batches that are applied one after the other.
type lane struct {
	next  *batch // being filled
	queue chan *batch
	free  chan *batch
}

type batch struct {
	replays []likes.Mutation
	line    int64 // of the first replay
}

// NewImport returns an import that is ready to run, or ErrInvalid. Without an
// apply function it only reads: a dry run.
func NewImport(r *Reader, apply ApplyFunc, c Config) (*Import, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Import{reader: r, apply: apply, config: c, lanes: make([]lane, c.Lanes)}, nil
}

// Done returns how many lines have been applied, or read in a dry run. It may be
// called while the import runs.
func (i *Import) Done() int64 { return i.done.Load() }

// Stalled returns why nothing gets through at the moment and is tried again, or
// "". It may be called while the import runs.
func (i *Import) Stalled() string {
	if why := i.stalled.Load(); why != nil {
		return *why
	}
	return ""
}

// Run reads and applies until the end of the stream, and returns what it did,
// also with an error:
//
//   - a [*LineError] is a bad line; all lines before it have been applied;
//   - the context's error says that it was interrupted; what had been read by
//     then has been applied as far as the store answered at once;
//   - everything else says that reading or applying failed; the lines up to
//     Summary.Through have been applied, and some after it may have been.
//
// In all cases running the import again is safe and completes it.
func (i *Import) Run(ctx context.Context) (Summary, error) {
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	var workers sync.WaitGroup
	for n := range i.lanes {
		l := &i.lanes[n]
		// Room for one waiting batch keeps a lane busy while the next fills.
		l.queue, l.free = make(chan *batch, 1), make(chan *batch, 3)
		workers.Go(func() { i.work(stop, cancel, l) })
	}
	err := i.read(stop)
	for n := range i.lanes {
		if l := &i.lanes[n]; l.next != nil {
			l.queue <- l.next
		}
		close(i.lanes[n].queue)
	}
	workers.Wait()
	i.sum.Through = i.reader.Line()
	var bad *LineError
	if errors.As(err, &bad) {
		i.sum.Through = bad.Line - 1
	}
	if i.lost > 0 {
		i.sum.Through = i.lost - 1
	}
	switch {
	case err == nil && i.failed == nil: // also if the context ended just after
		return i.sum, nil
	case ctx.Err() != nil:
		return i.sum, ctx.Err()
	case i.failed != nil:
		return i.sum, i.failed
	default:
		return i.sum, err
	}
}

// read fills the lanes until the end, an error, or the context's end.
func (i *Import) read(ctx context.Context) error {
	for ctx.Err() == nil {
		m, err := i.reader.Next()
		var bad *LineError
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &bad) && i.config.Skip:
			i.skip(bad)
			continue
		case err != nil:
			return err
		}
		i.sum.Lines++
		if i.apply == nil {
			i.done.Add(1)
			continue
		}
		l := &i.lanes[laneOf(m.Edge.Item, len(i.lanes))]
		if l.next == nil {
			l.next = l.empty(i.config.Batch, i.reader.Line())
		}
		l.next.replays = append(l.next.replays, m)
		if len(l.next.replays) == i.config.Batch {
			l.queue <- l.next
			l.next = nil
		}
	}
	return ctx.Err()
}

func (i *Import) skip(bad *LineError) {
	i.sum.Skipped++
	if len(i.sum.Bad) < MaxBad {
		i.sum.Bad = append(i.sum.Bad, bad)
	}
}

// empty returns a batch to fill, a used one if there is one.
func (l *lane) empty(size int, line int64) *batch {
	select {
	case b := <-l.free:
		b.replays, b.line = b.replays[:0], line
		return b
	default:
		return &batch{replays: make([]likes.Mutation, 0, size), line: line}
	}
}

// laneOf spreads items over lanes (by the multiplier of Knuth, TAOCP 6.4).
func laneOf(item likes.Item, lanes int) int {
	h := (uint64(item.ID) ^ uint64(item.Type)<<48) * 0x9e3779b97f4a7c15
	return int((h >> 32) * uint64(lanes) >> 32)
}

// work applies a lane's batches. After a failure anywhere it tries each of those
// that are left once.
func (i *Import) work(ctx context.Context, cancel context.CancelFunc, l *lane) {
	for b := range l.queue {
		if err := i.applyAll(ctx, b); err != nil {
			i.lose(b, err)
			cancel()
		}
		select {
		case l.free <- b:
		default:
		}
	}
}

func (i *Import) lose(b *batch, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.lost == 0 || b.line < i.lost {
		i.lost = b.line
	}
	if i.failed == nil {
		i.failed = fmt.Errorf("apply the lines from %d on: %w", b.line, err)
	}
}
