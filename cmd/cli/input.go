package cli

import (
	"context"
	"io"
)

// Interruptible returns a reader that gives up when the context ends. Opening a
// named pipe and reading a terminal or pipe cannot be taken back: its goroutine
// lives on until more comes, or the process ends, which is what an interrupted
// command does next.
func Interruptible(ctx context.Context, open func() (io.ReadCloser, error)) *io.PipeReader {
	out, in := io.Pipe()
	go func() {
		r, err := open()
		if err == nil {
			_, err = io.Copy(in, r)
			_ = r.Close() // it was only read
		}
		_ = in.CloseWithError(err) // nil: io.EOF
	}()
	context.AfterFunc(ctx, func() { _ = in.CloseWithError(ctx.Err()) })
	return out
}
