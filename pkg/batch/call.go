package batch

import (
	"context"
	"sync/atomic"

	"likectl/pkg/likes"
)

// call is one Do. Its entries live on the heap and not in the caller's slice,
// because a lane may still write to them after the caller has left.
type call[Op, Res any] struct {
	entries []entry[Op, Res]
	pending atomic.Int32
	done    chan struct{} // buffered: one signal when pending reaches 0
}

type entry[Op, Res any] struct {
	call   *call[Op, Res]
	op     Op
	answer Answer[Res]
	flight *Flight     // that answered it; nil unless flushes are observed
	queued bool        // only the submitting goroutine looks at it
	done   atomic.Bool // answer and flight may be read
}

func (c *call[Op, Res]) reset(ops []Op) {
	if cap(c.entries) < len(ops) {
		c.entries = make([]entry[Op, Res], len(ops))
	}
	c.entries = c.entries[:len(ops)]
	for i := range c.entries {
		e := &c.entries[i]
		e.call, e.op, e.answer, e.flight, e.queued = c, ops[i], Answer[Res]{}, nil, false
		e.done.Store(false)
	}
	c.pending.Store(int32(len(ops)))
}

// finish answers an entry whose answer is set. The order matters: the done flag
// publishes the answer to a caller that has given up waiting, the counter
// publishes all of them to one that waits.
func (e *entry[Op, Res]) finish() {
	e.done.Store(true)
	if e.call.pending.Add(-1) == 0 {
		e.call.done <- struct{}{}
	}
}

// wait reports whether all entries are done before the context ends.
func (c *call[Op, Res]) wait(ctx context.Context) bool {
	if len(c.entries) == 0 {
		return true
	}
	select {
	case <-c.done:
		return true
	default:
	}
	select {
	case <-c.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// answerUnfinished copies the answers that are there and calls the others
// uncertain.
func (c *call[Op, Res]) answerUnfinished(out []Answer[Res], cause error) {
	for i := range c.entries {
		if e := &c.entries[i]; e.done.Load() {
			out[i] = e.answer
		} else {
			out[i] = Answer[Res]{Err: likes.Errorf(likes.ErrUncertain, "gave up waiting for the commit, which goes on: %w", cause)}
		}
	}
}
