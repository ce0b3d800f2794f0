// Package pace spreads the work of long walks over time, so that those whose
// likes the store serves meanwhile do not notice.
package pace

import (
	"context"
	"time"

	"likectl/pkg/retry"
)

// Pacer allows so many things in a second. Time that a slow store took is not
// caught up: after a stall the rate is what it was, not more. It is not safe for
// concurrent use.
type Pacer struct {
	rate int
	next time.Time
}

// New returns a pacer of perSecond things, from 1 on. The first may be done at
// once.
func New(perSecond int) *Pacer { return &Pacer{rate: perSecond, next: time.Now()} }

// Wait returns when n things that have just been done are paid for, or with the
// context's error when it ends.
func (p *Pacer) Wait(ctx context.Context, n int) error {
	now := time.Now()
	p.next = p.next.Add(time.Duration(n) * time.Second / time.Duration(p.rate))
	if p.next.Before(now) {
		p.next = now
	}
	return retry.Sleep(ctx, p.next.Sub(now))
}
