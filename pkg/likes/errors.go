package likes

import (
	"errors"
	"fmt"
)

// The kinds of errors. Programs test for them with errors.Is; what happened to
// which thing is in the message of the error that wraps them.
var (
	// ErrInvalid: the request is malformed; nothing was applied.
	ErrInvalid = errors.New("invalid")
	// ErrNotFound: the item does not exist or must look as if it did not.
	ErrNotFound = errors.New("not found")
	// ErrErased: the user has been erased; nothing of the user is applied any more.
	ErrErased = errors.New("erased")
	// ErrOverloaded: refused to protect what is in flight; nothing was applied.
	ErrOverloaded = errors.New("overloaded")
	// ErrUnavailable: a store is away; nothing was applied.
	ErrUnavailable = errors.New("unavailable")
	// ErrUncertain: the operation may have been applied; repeating it is safe.
	ErrUncertain = errors.New("uncertain")
	// ErrFenced: the instance's lease or epoch has passed; nothing was applied.
	ErrFenced = errors.New("fenced")
	// ErrNotYet: the state that a version token names is not readable here yet.
	ErrNotYet = errors.New("not yet")
)

// ErasedError returns the ErrErased of a mutation.
func ErasedError(user UserID) error {
	return Errorf(ErrErased, "user %d has been erased: nothing was applied, and nothing of this user will be", user)
}

// kindError is a message with the kind that programs test for.
type kindError struct {
	kind error
	err  error
}

func (e *kindError) Error() string   { return e.err.Error() }
func (e *kindError) Unwrap() []error { return []error{e.kind, e.err} }

// Errorf returns an error of the kind whose text is the formatted message alone.
// %w in the format wraps a cause as fmt.Errorf does.
func Errorf(kind error, format string, args ...any) error {
	return &kindError{kind: kind, err: fmt.Errorf(format, args...)}
}
