package batch

import (
	"context"
	"sync"
	"time"

	"likectl/pkg/likes"
)

// lane is a queue and the goroutine that flushes it.
type lane[Op, Res any] struct {
	batcher *Batcher[Op, Res]
	id      int
	wake    chan struct{} // buffered: at least one entry was queued

	mu     sync.Mutex
	queue  []*entry[Op, Res]
	closed bool
}

// submit queues the call's operations for this lane, the first of which is
// first, or answers all of them with why they were refused.
func (l *lane[Op, Res]) submit(c *call[Op, Res], first int, lanes []int) {
	n := 0
	for i := first; i < len(c.entries); i++ {
		if lanes[i] == l.id {
			c.entries[i].queued = true
			n++
		}
	}
	l.mu.Lock()
	if err := l.refusal(n); err != nil {
		l.mu.Unlock()
		for i := first; i < len(c.entries); i++ {
			if lanes[i] == l.id {
				c.entries[i].answer.Err = err
				c.entries[i].finish()
			}
		}
		return
	}
	idle := len(l.queue) == 0
	for i := first; i < len(c.entries); i++ {
		if lanes[i] == l.id {
			l.queue = append(l.queue, &c.entries[i])
		}
	}
	l.mu.Unlock()
	if idle {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

func (l *lane[Op, Res]) refusal(n int) error {
	if l.closed {
		return likes.Errorf(likes.ErrUnavailable, "shutting down; nothing was applied")
	}
	if waiting := len(l.queue); waiting+n > l.batcher.cfg.MaxQueue {
		return likes.Errorf(likes.ErrOverloaded, "%d operations are waiting already; nothing was applied", waiting)
	}
	return nil
}

// run flushes until the batcher is closed and the queue is empty.
func (l *lane[Op, Res]) run(ctx context.Context) {
	size := l.batcher.cfg.MaxBatch
	taken := make([]*entry[Op, Res], 0, size)
	ops, out := make([]Op, size), make([]Res, size)
	for {
		if taken = l.take(taken[:0]); len(taken) > 0 {
			l.flush(ctx, taken, ops[:len(taken)], out[:len(taken)])
			continue
		}
		select {
		case <-l.wake:
			continue
		case <-l.batcher.stop:
		}
		// Nothing is queued after closed was set, which was before stop.
		if taken = l.take(taken[:0]); len(taken) == 0 {
			return
		}
		l.flush(ctx, taken, ops[:len(taken)], out[:len(taken)])
	}
}

// take moves up to MaxBatch entries from the head of the queue to taken.
func (l *lane[Op, Res]) take(taken []*entry[Op, Res]) []*entry[Op, Res] {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.queue), l.batcher.cfg.MaxBatch)
	taken = append(taken, l.queue[:n]...)
	rest := copy(l.queue, l.queue[n:])
	clear(l.queue[rest:])
	l.queue = l.queue[:rest]
	return taken
}

func (l *lane[Op, Res]) flush(ctx context.Context, taken []*entry[Op, Res], ops []Op, out []Res) {
	var flight *Flight
	if l.batcher.cfg.Observe != nil {
		flight = &Flight{Lane: l.id, Ops: len(taken), Began: time.Now()}
	}
	err := ctx.Err()
	if err != nil {
		err = likes.Errorf(likes.ErrUnavailable, "shut down before it was sent; nothing was applied")
	} else {
		for i, e := range taken {
			ops[i] = e.op
		}
		err = l.perform(ctx, ops, out)
	}
	if flight != nil {
		flight.Ended, flight.Err = time.Now(), err
	}
	for i, e := range taken {
		e.flight = flight
		if err != nil {
			e.answer.Err = err
		} else {
			e.answer.Res = out[i]
		}
		e.finish()
	}
	clear(taken)
	clear(out)
}

func (l *lane[Op, Res]) perform(ctx context.Context, ops []Op, out []Res) error {
	ctx, cancel := context.WithTimeout(ctx, l.batcher.cfg.FlushTimeout)
	defer cancel()
	return l.batcher.flush(ctx, l.id, ops, out)
}
