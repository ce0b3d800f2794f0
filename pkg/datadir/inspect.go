package datadir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Info is what can be seen of a data folder without changing anything in it.
type Info struct {
	Path string
	// Exists is false for a folder that is still to be made; then only the space
	// is known, that of the file system on which it would be.
	Exists bool
	Mode   fs.FileMode
	// Secret is nil if the secret can be used, fs.ErrNotExist if it is still to
	// be made, otherwise what is wrong with it.
	Secret error
	// Database is the path of the SQLite file, and what the system says of it,
	// nil while there is none.
	Database string
	File     fs.FileInfo
	// Free is the space in bytes that this user can still fill, of Size.
	Free, Size uint64
}

// Inspect looks at a data folder.
func Inspect(path string) (Info, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return Info{}, fmt.Errorf("look at data folder %s: %w", path, err)
	}
	i := Info{Path: abs, Database: filepath.Join(abs, databaseName), Secret: fs.ErrNotExist}
	if i.Free, i.Size, err = space(abs); err != nil {
		return i, fmt.Errorf("look at data folder %s: %w", abs, err)
	}
	info, err := os.Stat(abs)
	if errors.Is(err, fs.ErrNotExist) {
		return i, nil
	}
	if err == nil && !info.IsDir() {
		err = errors.New("it is not a folder")
	}
	if err != nil {
		return i, fmt.Errorf("look at data folder %s: %w", abs, err)
	}
	i.Exists, i.Mode = true, info.Mode()
	_, i.Secret = loadSecret(filepath.Join(abs, secretName))
	if i.File, err = os.Stat(i.Database); err != nil {
		i.File = nil
		if !errors.Is(err, fs.ErrNotExist) {
			return i, fmt.Errorf("look at data folder %s: %w", abs, err)
		}
	}
	return i, nil
}

// space returns the free and the whole space of the file system that a path, or
// the nearest folder above it that exists, is on.
func space(path string) (free, size uint64, err error) {
	for {
		var s syscall.Statfs_t
		err := syscall.Statfs(path, &s)
		if err == nil {
			block := uint64(s.Bsize) //nolint:gosec // a block's size is positive
			return s.Bavail * block, s.Blocks * block, nil
		}
		parent := filepath.Dir(path)
		if !errors.Is(err, fs.ErrNotExist) || parent == path {
			return 0, 0, err
		}
		path = parent
	}
}

// Lock takes the lock of a folder that exists, and nothing else. The error is a
// [*LockedError] while another process has the folder open.
func Lock(path string) (io.Closer, error) { return acquire(path) }
