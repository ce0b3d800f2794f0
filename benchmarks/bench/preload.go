package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"likectl/pkg/likes"
)

// preloaders is how many batches are under way at once: enough to fill the replay
// lane while the others travel.
const preloaders = 4

// preload makes edge number 0 to Preload-1. Each has a fixed clock, so that doing it
// again changes nothing: a server that has been filled is quickly found to be.
func (c *Config) preload(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, done atomic.Int64
	var work sync.WaitGroup
	for range preloaders {
		work.Go(func() {
			for {
				first := next.Add(likes.MaxApply) - likes.MaxApply
				if first >= c.Preload || ctx.Err() != nil {
					return
				}
				n := min(likes.MaxApply, c.Preload-first)
				if err := c.preloadBatch(ctx, first, n); err != nil {
					cancel(err)
					return
				}
				c.progress(done.Add(n), c.Preload)
			}
		})
	}
	work.Wait()
	return context.Cause(ctx)
}

func (c *Config) preloadBatch(ctx context.Context, first, n int64) error {
	ms := make([]likes.Mutation, n)
	for i := range ms {
		ms[i] = likes.Mutation{Op: likes.Set, Edge: c.edge(first + int64(i)), Fixed: likes.Clock(1+first+int64(i)) << 12}
	}
	for range maxTries {
		left := ms[:0]
		var last error
		for i, r := range c.Admin.Apply(ctx, ms) {
			switch {
			case r.Err == nil:
			case errors.Is(r.Err, likes.ErrOverloaded), errors.Is(r.Err, likes.ErrUncertain):
				left, last = append(left, ms[i]), r.Err
			default:
				return r.Err
			}
		}
		if ms = left; len(ms) == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w (%w)", ctx.Err(), last)
		}
	}
	return fmt.Errorf("%d edges were refused %d times", len(ms), maxTries)
}

// maxTries is how often a batch is sent to a server that is overloaded.
const maxTries = 100

// edge returns the i-th edge: all of them differ, and both users and items are
// spread evenly.
func (c *Config) edge(i int64) likes.Edge {
	users, items := c.Population.Users, c.Population.Items
	user := i % users
	item := (i/users + user*stride(items)) % items
	return likes.Edge{
		Counter: likes.Likes, User: likes.UserID(1 + user),
		Item: likes.Item{Type: c.ItemNumber, ID: likes.ItemID(1 + item)},
	}
}

// stride is a step that visits all items in a scattered order: near the golden
// section of their number, and without a divisor in common with it.
func stride(items int64) int64 {
	step := max(1, items*618/1000)
	for gcd(step, items) != 1 {
		step++
	}
	return step
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
