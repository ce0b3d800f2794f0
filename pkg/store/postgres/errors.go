package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"likectl/pkg/likes"
)

// Bounds of the repetition of transactions that the server rolled back, and of
// statements that never left.
const (
	maxAttempts = 10
	firstDelay  = 2 * time.Millisecond
	maxDelay    = 100 * time.Millisecond
)

// unsentError is a failure before a connection was at hand.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return "no connection: " + e.err.Error() }
func (e *unsentError) Unwrap() error { return e.err }

// rolledBack reports whether the server answered a statement with an error: then
// its transaction was rolled back, whatever the SQLSTATE. Not so for FATAL, with
// which the server ends the session: an administrator's shutdown can come after
// the commit and before the server says that it is ready.
func rolledBack(err error) (*pgconn.PgError, bool) {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return nil, false
	}
	severity := pgErr.SeverityUnlocalized
	if severity == "" {
		severity = pgErr.Severity
	}
	return pgErr, severity == "ERROR"
}

// unsent reports whether surely nothing was sent.
func unsent(err error) bool {
	var e *unsentError
	return errors.As(err, &e) || pgconn.SafeToRetry(err)
}

// again reports whether repeating can help and surely applies nothing twice.
func again(err error) bool {
	if pgErr, ok := rolledBack(err); ok {
		return pgErr.Code == "40001" || pgErr.Code == "40P01" // serialisation failure, deadlock
	}
	if errors.Is(err, errLate) {
		return true // the server's clock has been read anew
	}
	var e *unsentError
	return !errors.As(err, &e) && pgconn.SafeToRetry(err) // a connection that had died in the pool
}

// persist repeats a call until it succeeds, repeating cannot help, or the
// attempts or the context end. Delays are random, so that those who collided do
// not meet again.
func persist(ctx context.Context, call func() error) error {
	delay := firstDelay
	for attempt := 1; ; attempt++ {
		err := call()
		if err == nil || attempt == maxAttempts || !again(err) || ctx.Err() != nil {
			return err
		}
		timer := time.NewTimer(rand.N(delay)) //nolint:gosec // jitter needs no secrecy
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
		delay = min(2*delay, maxDelay)
	}
}

// attempt returns of a failed connection what its last attempt met. The driver
// lists all: with and without TLS, each address, mostly the same twice, and that
// the server has no TLS before the password that is wrong.
func attempt(err error) error {
	var failed *pgconn.ConnectError
	var all interface {
		error
		Unwrap() []error
	}
	if !errors.As(err, &failed) || !errors.As(failed.Unwrap(), &all) {
		return err
	}
	errs := all.Unwrap()
	return errs[len(errs)-1]
}

// writeErr says what a failed write means for the data.
func (s *Store) writeErr(what string, err error) error {
	cause := attempt(err)
	if _, ok := rolledBack(err); ok || errors.Is(err, errLate) {
		return likes.Errorf(likes.ErrUnavailable, "%s in %s: refused and rolled back, nothing was applied: %w", what, s.place, cause)
	}
	if unsent(err) {
		return likes.Errorf(likes.ErrUnavailable, "%s in %s: not sent, nothing was applied: %w", what, s.place, cause)
	}
	return likes.Errorf(likes.ErrUncertain,
		"%s in %s: the answer was lost, all or nothing of it was applied, repeating is safe: %w", what, s.place, cause)
}
