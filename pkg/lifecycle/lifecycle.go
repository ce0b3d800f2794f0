// Package lifecycle closes in reverse what was opened in order.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Stack is what a process has opened, in order. The zero Stack is empty. It is
// not safe for concurrent use.
type Stack struct {
	steps []step
}

type step struct {
	name  string
	close func(context.Context) error
}

// Push adds what was opened last, with a name that operators know.
func (s *Stack) Push(name string, closeFunc func(context.Context) error) {
	s.steps = append(s.steps, step{name, closeFunc})
}

// Close closes everything, last opened first, and logs each step. An error does
// not keep the others from being closed; all are returned. The stack is empty
// afterwards.
func (s *Stack) Close(ctx context.Context, log *slog.Logger) error {
	var all []error
	for len(s.steps) > 0 {
		last := s.steps[len(s.steps)-1]
		s.steps = s.steps[:len(s.steps)-1]
		began := time.Now()
		err := last.close(ctx)
		if err != nil {
			all = append(all, fmt.Errorf("close %s: %w", last.name, err))
			log.Error("closed with an error", "part", last.name, "took", time.Since(began), "error", err)
			continue
		}
		log.Debug("closed", "part", last.name, "took", time.Since(began))
	}
	return errors.Join(all...)
}
