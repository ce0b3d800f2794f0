package imports

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/cmd/cli"
)

func TestInterruptedWhileANamedPipeHasNoWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, _, _, err := execute(ctx, nil, path, "--data", t.TempDir(), "--dry-run")
		ended <- err
	}()
	cancel()
	select {
	case err := <-ended:
		require.Equal(t, cli.Interrupted, cli.CodeOf(err), "%v", err)
	case <-time.After(10 * time.Second):
		t.Error("it still waits for the pipe's writer")
	}
	w, err := os.OpenFile(path, os.O_RDWR, 0) // ends the goroutine that opens
	require.NoError(t, err)
	require.NoError(t, w.Close())
}

func TestNamedPipeIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(path, []byte(file()), 0o600) }()
	out, _, code, err := execute(t.Context(), nil, path, "--data", t.TempDir(), "--dry-run", "--output", "json")
	require.NoError(t, err)
	require.Equal(t, cli.OK, code)
	require.NoError(t, <-written)
	require.EqualValues(t, 1000, decode(t, out).Lines)
}
