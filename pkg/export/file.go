package export

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// File is an output that appears whole or not at all: it is written beside its
// name and moved there when it is complete and on disk. It is readable by its
// owner only, since it says who likes what. A name that ends in .gz is gzipped.
type File struct {
	path string // with links followed
	file *os.File
	zip  *gzip.Writer // nil if plain
	// direct: the name is a pipe or device, which cannot be replaced.
	direct bool
}

var _ io.Writer = (*File)(nil)

// Create begins a file. End it with Commit or Discard.
func Create(path string) (*File, error) {
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		target, err = path, nil
	}
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", path, err)
	}
	f := &File{path: target}
	info, err := os.Stat(target)
	switch {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("create %s: it is a folder", path)
	case err == nil && !info.Mode().IsRegular():
		f.direct = true
		f.file, err = os.OpenFile(target, os.O_WRONLY, 0)
	default:
		f.file, err = os.CreateTemp(filepath.Dir(target), filepath.Base(target)+".partial-*") // with mode 0600
	}
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", path, err)
	}
	if strings.HasSuffix(path, ".gz") {
		// Lines of one item differ in little: the fastest level makes them a
		// fifth, better ones hardly less.
		f.zip, err = gzip.NewWriterLevel(f.file, gzip.BestSpeed)
		if err != nil {
			return nil, errors.Join(err, f.Discard())
		}
	}
	return f, nil
}

// Write implements [io.Writer].
func (f *File) Write(p []byte) (int, error) {
	if f.zip != nil {
		return f.zip.Write(p)
	}
	return f.file.Write(p)
}

// Commit completes the file and gives it its name, in place of what had it. On an
// error there is no new file.
func (f *File) Commit() error {
	var err error
	if f.zip != nil {
		err = f.zip.Close()
	}
	if f.direct {
		return errors.Join(err, f.file.Close())
	}
	if err == nil {
		err = f.file.Sync()
	}
	if err = errors.Join(err, f.file.Close()); err == nil {
		err = os.Rename(f.file.Name(), f.path)
	}
	if err != nil {
		return fmt.Errorf("complete %s: %w", f.path, errors.Join(err, os.Remove(f.file.Name())))
	}
	return syncDir(filepath.Dir(f.path))
}

// Discard removes what was written.
func (f *File) Discard() error {
	err := f.file.Close()
	if f.direct {
		return err
	}
	return errors.Join(err, os.Remove(f.file.Name()))
}

// syncDir makes the entries of a folder survive a power failure.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
