package bench

import (
	"context"
	"time"

	"likectl/pkg/retry"
)

// logWatch follows the database's log during a measurement.
type logWatch struct {
	ctx   context.Context //nolint:containedctx // of the one measurement that it lives for
	read  func(context.Context) (bytes, flushes int64, err error)
	ready chan struct{}
	// from is the state at the start of the measurement, last at the last step.
	from, last logState
}

type logState struct{ bytes, flushes int64 }

func newLogWatch(ctx context.Context, read func(context.Context) (bytes, flushes int64, err error)) *logWatch {
	return &logWatch{ctx: ctx, read: read, ready: make(chan struct{})}
}

// start notes the state after a while.
func (w *logWatch) start(after time.Duration) {
	go func() {
		defer close(w.ready)
		_ = retry.Sleep(w.ctx, after) // a context that ends ends the run too
		w.from, _ = w.now()
		w.last = w.from
	}()
}

// now reads the log; false if it cannot be read, on which no run depends.
func (w *logWatch) now() (logState, bool) {
	if w.read == nil {
		return logState{}, false
	}
	bytes, flushes, err := w.read(w.ctx)
	return logState{bytes, flushes}, err == nil
}

// step returns what was written since the last step, 0 if unknown.
func (w *logWatch) step() (bytes, flushes int64) {
	<-w.ready
	now, ok := w.now()
	if !ok {
		return 0, 0
	}
	before := w.last
	w.last = now
	return since(now, before)
}

// stop returns what was written in all.
func (w *logWatch) stop() (bytes, flushes int64) {
	<-w.ready
	now, ok := w.now()
	if !ok || w.from == (logState{}) {
		return 0, 0
	}
	return since(now, w.from)
}

func since(now, before logState) (bytes, flushes int64) {
	if now.flushes < 0 {
		return now.bytes - before.bytes, -1
	}
	return now.bytes - before.bytes, now.flushes - before.flushes
}
