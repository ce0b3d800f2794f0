package ingest

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"likectl/pkg/likes"
)

// Format is the form of an import file.
type Format string

// The formats. Auto tells them apart by the first character, { or not.
const (
	Auto  Format = ""
	CSV   Format = "csv"
	JSONL Format = "jsonl"
)

// ParseFormat returns the format of that name, or ErrInvalid.
func ParseFormat(name string) (Format, error) {
	switch f := Format(strings.ToLower(name)); f {
	case Auto, CSV, JSONL:
		return f, nil
	default:
		return Auto, likes.Errorf(likes.ErrInvalid, "format %q is unknown, want csv or jsonl", name)
	}
}

// ReaderConfig says how a stream is read.
type ReaderConfig struct {
	Format Format
	// Types are the item types that lines may name.
	Types likes.ItemTypes
	// Size is the size of the file in bytes, 0 if unknown; it sizes the filter
	// behind the ranks.
	Size int64
}

// LineError is a line that is not a like or unlike. Reading may go on behind it.
type LineError struct {
	Line int64
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }
func (e *LineError) Unwrap() error { return e.Err }

// Reader reads a stream of replays. It is not safe for concurrent use.
type Reader struct {
	lines  *lines
	format format
	types  likes.ItemTypes
	ranks  *ranks
	fields record
}

// format takes a line apart. The record is zero before.
type format interface {
	parse(line []byte, r *record) error
}

// OpenReader begins to read: of a CSV file the header, whose faults are a
// [*LineError]. An empty stream is a fault too: who imports it means another one.
func OpenReader(src io.Reader, c ReaderConfig) (*Reader, error) {
	return openReader(src, c, filterBits(c.Size))
}

func openReader(src io.Reader, c ReaderConfig, filterBits uint) (*Reader, error) {
	in, err := openLines(src)
	if err != nil {
		return nil, err
	}
	r := &Reader{lines: in, types: c.Types, ranks: newRanks(filterBits)}
	if c.Format == JSONL || c.Format == Auto && in.peek() == '{' {
		r.format = jsonFormat{}
		return r, nil
	}
	line, err := in.next()
	switch {
	case errors.Is(err, io.EOF):
		return nil, errors.New("the input is empty: it has not even a header")
	case errors.Is(err, ErrLineTooLong):
		return nil, &LineError{in.n, err}
	case err != nil:
		return nil, fmt.Errorf("read the header: %w", err)
	}
	header, err := readHeader(line)
	if err != nil {
		return nil, &LineError{in.n, err}
	}
	r.format = header
	return r, nil
}

// Line returns the number of the line that was read last, counted from 1 with
// header and blank lines, as editors do.
func (r *Reader) Line() int64 { return r.lines.n }

// Next returns the next replay, or io.EOF. A [*LineError] is a bad line; every
// other error is the stream's and final.
func (r *Reader) Next() (likes.Mutation, error) {
	line, err := r.lines.next()
	switch {
	case errors.Is(err, ErrLineTooLong):
		return likes.Mutation{}, &LineError{r.lines.n, err}
	case errors.Is(err, io.EOF):
		return likes.Mutation{}, io.EOF
	case err != nil:
		return likes.Mutation{}, fmt.Errorf("read on after line %d: %w", r.lines.n, err)
	}
	r.fields = record{}
	if err := r.format.parse(line, &r.fields); err != nil {
		return likes.Mutation{}, &LineError{r.lines.n, err}
	}
	m, err := r.fields.mutation(r.lines.n, r.types)
	if err == nil {
		err = r.ranks.rank(&m)
	}
	if err != nil {
		return likes.Mutation{}, &LineError{r.lines.n, err}
	}
	return m, nil
}
