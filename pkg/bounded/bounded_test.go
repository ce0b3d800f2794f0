package bounded_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"likectl/pkg/bounded"
)

func TestReadAll_UpToTheBound(t *testing.T) {
	for _, text := range []string{"", "1", "12345"} {
		got, err := bounded.ReadAll(strings.NewReader(text), 5)
		require.NoError(t, err)
		require.Equal(t, text, string(got))
	}
	got, err := bounded.ReadAll(strings.NewReader("123456"), 5)
	require.ErrorContains(t, err, "more than 5 bytes")
	require.Empty(t, got)
	broken := errors.New("broken")
	_, err = bounded.ReadAll(iotest.ErrReader(broken), 5)
	require.ErrorIs(t, err, broken)
}

func TestReadFile_RegularFilesOnly(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(name, []byte("12345"), 0o600))
	got, err := bounded.ReadFile(name, 5)
	require.NoError(t, err)
	require.Equal(t, "12345", string(got))
	_, err = bounded.ReadFile(name, 4)
	require.ErrorContains(t, err, "more than 4 bytes")

	link := filepath.Join(dir, "link") // as a mounted secret is
	require.NoError(t, os.Symlink(name, link))
	_, err = bounded.ReadFile(link, 5)
	require.NoError(t, err)

	_, err = bounded.ReadFile(filepath.Join(dir, "none"), 5)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = bounded.ReadFile(dir, 5)
	require.ErrorContains(t, err, "no regular file")
	pipe := filepath.Join(dir, "pipe") // without a writer: opening it would wait
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err = bounded.ReadFile(pipe, 5)
	require.ErrorContains(t, err, "no regular file")
}
