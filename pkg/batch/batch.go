// Package batch turns concurrent operations into one commit: a batch is whatever
// arrived while the previous one was in flight. It is self-clocked and knows no
// timer: a lone operation is flushed at once, and the busier the store is, the
// larger the batches get, so that the cost of a durable commit is shared by as
// many operations as wait for it anyway. (The alternative, a flush every few
// milliseconds, makes a quiet service slow and a busy one no faster.)
//
// Operations are spread over lanes; each lane has one flush in flight. Whoever
// maps the same key to the same lane gets the operations on it applied in the
// order they were submitted.
//
// An operation is in exactly one of these states:
//
//	refused   the lane's queue was full or the batcher closed: never flushed
//	queued    waits for the lane's flush in flight to end
//	in flight part of the lane's present flush
//	done      answered by the flush function
//
// A caller that leaves before "done" gets likes.ErrUncertain. Its operation is
// not taken back: whoever has asked for something and went away must find it
// either done or not done, and taking it out of a queue could not be told from
// having been too late.
package batch

import (
	"context"
	"slices"
	"sync"
	"time"

	"likectl/pkg/likes"
)

// Config bounds a Batcher. Every limit is at least 1.
type Config struct {
	// Lanes is the number of flushes that may be in flight at once.
	Lanes int
	// MaxBatch is the largest number of operations in one flush. Operations
	// have a fixed size, so it bounds the bytes of a flush too.
	MaxBatch int
	// MaxQueue is the largest number of operations queued in a lane; beyond it
	// they are refused at once, while those that wait already keep their bounded
	// wait of MaxQueue/MaxBatch flushes.
	MaxQueue int
	// FlushTimeout ends the context of a flush.
	FlushTimeout time.Duration
	// Observe, if set, is called by Do before it returns, once for every flush
	// that answered operations of it: with its context, when they were queued,
	// and the flush. Flushes that the caller did not wait for are left out.
	Observe func(ctx context.Context, queued time.Time, f Flight)
}

// Flight is a flush that has ended.
type Flight struct {
	// Lane flushed Ops operations, those of other calls included.
	Lane, Ops    int
	Began, Ended time.Time
	Err          error
}

// Validate returns ErrInvalid that names the first limit below 1.
func (c Config) Validate() error {
	switch {
	case c.Lanes < 1:
		return likes.Errorf(likes.ErrInvalid, "lanes is %d, want at least 1", c.Lanes)
	case c.MaxBatch < 1:
		return likes.Errorf(likes.ErrInvalid, "max batch is %d, want at least 1", c.MaxBatch)
	case c.MaxQueue < 1:
		return likes.Errorf(likes.ErrInvalid, "max queue is %d, want at least 1", c.MaxQueue)
	case c.FlushTimeout <= 0:
		return likes.Errorf(likes.ErrInvalid, "flush timeout is %v, want more than 0", c.FlushTimeout)
	default:
		return nil
	}
}

// FlushFunc performs a lane's batch, in order, and answers ops[i] in out[i]. It
// is never called twice at once for one lane. When it returns without an error
// every operation is durable; otherwise the error is the answer of all of them.
type FlushFunc[Op, Res any] func(ctx context.Context, lane int, ops []Op, out []Res) error

// Batcher batches operations of type Op that are answered by a Res. It is safe
// for concurrent use.
type Batcher[Op, Res any] struct {
	cfg   Config
	flush FlushFunc[Op, Res]
	lanes []*lane[Op, Res]
	calls sync.Pool // of *call, all entries done

	stop    chan struct{} // closed by the first Close: accept nothing more
	stopped sync.Once
	abort   context.CancelFunc
	running sync.WaitGroup
}

// Start returns a Batcher whose lanes run until Close.
func Start[Op, Res any](cfg Config, flush FlushFunc[Op, Res]) (*Batcher[Op, Res], error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	// Flushes outlive the callers that caused them, so their context is the
	// batcher's own; Close cancels it when its patience ends.
	ctx, abort := context.WithCancel(context.Background()) //nolint:forbidigo // see above
	b := &Batcher[Op, Res]{cfg: cfg, flush: flush, stop: make(chan struct{}), abort: abort}
	b.calls.New = func() any { return &call[Op, Res]{done: make(chan struct{}, 1)} }
	for i := range cfg.Lanes {
		l := &lane[Op, Res]{batcher: b, id: i, wake: make(chan struct{}, 1)}
		b.lanes = append(b.lanes, l)
		b.running.Go(func() { l.run(ctx) })
	}
	return b, nil
}

// Answer is the result of one operation; Res is set if Err is nil.
type Answer[Res any] struct {
	Res Res
	Err error
}

// Do submits the operations, operation i to lane lanes[i], and waits for all
// answers, in out. Operations of one call on one lane enter its queue together
// and in order, or are refused together with likes.ErrOverloaded. When the
// context ends first, what is not done by then is answered likes.ErrUncertain.
func (b *Batcher[Op, Res]) Do(ctx context.Context, ops []Op, lanes []int, out []Answer[Res]) {
	c := b.calls.Get().(*call[Op, Res]) //nolint:forcetypeassert // the pool holds nothing else
	c.reset(ops)
	var queued time.Time
	if b.cfg.Observe != nil {
		queued = time.Now()
	}
	for first := range ops {
		if c.entries[first].queued {
			continue
		}
		b.lanes[lanes[first]].submit(c, first, lanes)
	}
	if !c.wait(ctx) {
		// Lanes still write into the call, so it is left to the collector.
		c.answerUnfinished(out, context.Cause(ctx))
		b.observe(ctx, queued, c)
		return
	}
	for i := range ops {
		out[i] = c.entries[i].answer
	}
	b.observe(ctx, queued, c)
	b.calls.Put(c)
}

// observe tells Observe of the flushes that the call's finished entries were in.
func (b *Batcher[Op, Res]) observe(ctx context.Context, queued time.Time, c *call[Op, Res]) {
	if b.cfg.Observe == nil {
		return
	}
	var told []*Flight
	for i := range c.entries {
		e := &c.entries[i]
		if !e.done.Load() || e.flight == nil || slices.Contains(told, e.flight) {
			continue
		}
		told = append(told, e.flight)
		b.cfg.Observe(ctx, queued, *e.flight)
	}
}

// Queued returns how many operations wait in all lanes.
func (b *Batcher[Op, Res]) Queued() int {
	n := 0
	for _, l := range b.lanes {
		l.mu.Lock()
		n += len(l.queue)
		l.mu.Unlock()
	}
	return n
}

// Close refuses new operations, flushes what is queued and returns when all
// lanes have ended. When the context ends first, the flushes in flight are
// cancelled and what is still queued is answered likes.ErrUnavailable; the
// context's error is returned. Closing again waits again.
func (b *Batcher[Op, Res]) Close(ctx context.Context) error {
	for _, l := range b.lanes {
		l.mu.Lock()
		l.closed = true
		l.mu.Unlock()
	}
	b.stopped.Do(func() { close(b.stop) })
	ended := make(chan struct{})
	go func() {
		b.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		b.abort()
		return nil
	case <-ctx.Done():
		b.abort()
		<-ended
		return ctx.Err()
	}
}
