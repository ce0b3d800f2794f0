// Package bounded reads what others wrote, whole, but no more than a bound: memory
// must not depend on what stands in a file or comes over a network.
package bounded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// ReadAll reads at most so many bytes; more are an error.
func ReadAll(r io.Reader, most int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(b)) > most {
		return nil, fmt.Errorf("it has more than %d bytes", most)
	}
	return b, err
}

// ReadFile reads a regular file of at most so many bytes.
func ReadFile(name string, most int64) ([]byte, error) {
	// Opening a pipe would wait for its writer, and reading it might never end;
	// what was opened is asked, since the name can stand for another file by then.
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no regular file")
	}
	return ReadAll(file, most)
}
