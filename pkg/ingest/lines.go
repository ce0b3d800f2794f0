package ingest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// MaxLine is the longest line in bytes. The longest sensible one has less than
// 300; the bound keeps a file without line ends from filling the memory.
const MaxLine = 64 << 10

// ErrLineTooLong is what is wrong with a line of more than MaxLine bytes.
var ErrLineTooLong = fmt.Errorf("it is longer than %d bytes", MaxLine)

// lines splits a stream into numbered lines.
type lines struct {
	buf *bufio.Reader
	n   int64 // number of the line that next returned, from 1
}

// openLines starts reading: it takes off gzip, told by its first two bytes
// rather than by a name that a pipe does not have, and a byte order mark.
func openLines(src io.Reader) (*lines, error) {
	buf := bufio.NewReaderSize(src, MaxLine)
	if magic, _ := buf.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(buf)
		if err != nil {
			return nil, fmt.Errorf("read gzip header: %w", err)
		}
		buf = bufio.NewReaderSize(z, MaxLine)
	}
	if magic, _ := buf.Peek(4); string(magic) == "PAR1" {
		return nil, errors.New("the input is Parquet, which is not imported; export the likes as CSV or JSONL")
	}
	bom := []byte("\xef\xbb\xbf")
	if head, _ := buf.Peek(len(bom)); bytes.Equal(head, bom) {
		if _, err := buf.Discard(len(bom)); err != nil {
			return nil, err
		}
	}
	return &lines{buf: buf}, nil
}

// peek returns the first byte that is not white space, 0 if none is in sight. It
// waits for no more than that byte: a pipe may bring the next line much later.
func (l *lines) peek() byte {
	for n := 1; n <= MaxLine; n++ {
		head, err := l.buf.Peek(n)
		if err != nil {
			return 0
		}
		if c := head[n-1]; c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c
		}
	}
	return 0
}

// next returns the next line that is not blank, without its end; it is valid
// until the call after. After ErrLineTooLong the rest of that line is skipped.
func (l *lines) next() ([]byte, error) {
	for {
		line, err := l.buf.ReadSlice('\n')
		if len(line) > 0 {
			l.n++
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, l.skip()
		case errors.Is(err, io.EOF) && len(line) > 0: // the last line may lack its end
		case err != nil:
			return nil, err
		}
		if line = bytes.TrimRight(line, "\r\n"); len(bytes.TrimSpace(line)) > 0 {
			return line, nil
		}
	}
}

func (l *lines) skip() error {
	for {
		switch _, err := l.buf.ReadSlice('\n'); {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil, errors.Is(err, io.EOF):
			return ErrLineTooLong
		default:
			return err
		}
	}
}
