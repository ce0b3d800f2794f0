// Package cli holds what every command shares: exit codes, usage errors and the
// --output flag.
package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// The exit codes of likectl, documented by `likectl help exit-codes`.
const (
	OK          = 0   // done
	Failure     = 1   // a store, file or server failed
	Usage       = 2   // flags, arguments or configuration are wrong; nothing was changed
	Threshold   = 3   // a measured value missed an --expect
	Difference  = 4   // a verification found a difference
	Interrupted = 130 // stopped by a signal
)

// codeError carries the exit code of a failed command.
type codeError struct {
	code int
	err  error
}

func (e *codeError) Error() string { return e.err.Error() }
func (e *codeError) Unwrap() error { return e.err }

// WithCode returns err with the exit code that the process ends with.
func WithCode(code int, err error) error { return &codeError{code: code, err: err} }

// Usagef returns an error that ends the process with [Usage].
func Usagef(format string, args ...any) error {
	return WithCode(Usage, fmt.Errorf(format, args...))
}

// Reported returns err as one that the command itself has told of, in a form
// that what reads it understands: main prints nothing more.
func Reported(err error) error { return &reportedError{err} }

// IsReported says whether an error has been told of.
func IsReported(err error) bool {
	var e *reportedError
	return errors.As(err, &e)
}

type reportedError struct{ err error }

func (e *reportedError) Error() string { return e.err.Error() }
func (e *reportedError) Unwrap() error { return e.err }

// CodeOf returns the exit code of a command's error: 0 for nil, Failure for one
// without a code.
func CodeOf(err error) int {
	if err == nil {
		return OK
	}
	var e *codeError
	if errors.As(err, &e) {
		return e.code
	}
	return Failure
}

// Output is the form in which a command lists things.
type Output string

// The forms of output.
const (
	Table Output = "table"
	JSON  Output = "json"
)

// String returns the form's name.
func (o *Output) String() string { return string(*o) }

// Set accepts the names of the forms.
func (o *Output) Set(s string) error {
	switch Output(s) {
	case Table, JSON:
		*o = Output(s)
		return nil
	default:
		return errors.New("want table or json")
	}
}

// Type names the values in help texts.
func (o *Output) Type() string { return "table|json" }

// OutputFlag adds --output to a command and completes it.
func OutputFlag(cmd *cobra.Command, o *Output) {
	*o = Table
	cmd.Flags().VarP(o, "output", "o", "form of the output")
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("output",
		cobra.FixedCompletions([]string{string(Table), string(JSON)}, cobra.ShellCompDirectiveNoFileComp)))
}
