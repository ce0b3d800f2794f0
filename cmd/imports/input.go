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
		return &input{Reader: interruptible(ctx, stdin), close: func() error { return nil }}, nil
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
	in := &input{Reader: f, close: f.Close}
	if info.Mode().IsRegular() {
		in.size = info.Size()
	}
	return in, nil
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

// interruptible returns a reader that gives up when the context ends. A read of
// a terminal or pipe cannot be taken back: its goroutine lives on until more
// comes, or the process ends, which is what an interrupted command does next.
func interruptible(ctx context.Context, r io.Reader) io.Reader {
	out, in := io.Pipe()
	go func() {
		_, err := io.Copy(in, r)
		_ = in.CloseWithError(err) // nil: io.EOF
	}()
	context.AfterFunc(ctx, func() { _ = in.CloseWithError(ctx.Err()) })
	return out
}
