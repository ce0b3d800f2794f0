package imports

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"likectl/cmd/cli"
	"likectl/pkg/progress"
)

// input counts what is read of a file.
type input struct {
	io.Reader
	size  int64 // 0 if unknown
	read  atomic.Int64
	close func() error
}

// openInput opens a file, or stdin for -.
func openInput(ctx context.Context, stdin io.Reader, path string) (*input, error) {
	if path == "-" {
		r := cli.Interruptible(ctx, func() (io.ReadCloser, error) { return io.NopCloser(stdin), nil })
		return &input{Reader: r, close: r.Close}, nil
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		r := cli.Interruptible(ctx, func() (io.ReadCloser, error) { return os.Open(path) })
		return &input{Reader: r, close: r.Close}, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, cli.Usagef("nothing was imported: %w", err)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder", path)
	}
	if err != nil {
		_ = f.Close()
		return nil, cli.Usagef("nothing was imported: %w", err)
	}
	return &input{Reader: f, size: info.Size(), close: f.Close}, nil
}

// Read implements [io.Reader].
func (in *input) Read(p []byte) (int, error) {
	n, err := in.Reader.Read(p)
	in.read.Add(int64(n))
	return n, err
}

// sample tells how far the import is. How many lines the file has is estimated
// from the part that was read.
func (in *input) sample(lines int64) progress.Sample {
	s := progress.Sample{Done: lines}
	if read := in.read.Load(); in.size > 0 && read > 0 {
		s.Total = int64(float64(lines) * float64(in.size) / float64(read))
	}
	return s
}
