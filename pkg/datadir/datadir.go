// Package datadir is the folder in which the embedded store lives: one SQLite
// database, the secret that signs tokens, and a lock that keeps a second
// process away.
//
//	likectl-data/       0700
//	  lock              held with flock(2) while a process uses the store; names its pid
//	  secret            32 random bytes, 0600
//	  likes.db          the database (and likes.db-wal, likes.db-shm beside it)
//
// The lock is advisory and belongs to the open file: the kernel drops it when
// the process ends, also after kill -9, so a stale lock cannot exist and the
// pid in the file is for people only. The package needs a Unix system and a
// local file system, as SQLite's WAL does.
package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Default is the folder that commands use unless told otherwise.
const Default = "./likectl-data"

const (
	lockName     = "lock"
	secretName   = "secret"
	databaseName = "likes.db"
)

// Dir is a locked data folder.
type Dir struct {
	path   string
	secret []byte
	lock   *os.File
}

// Open creates the folder if it is missing, locks it for this process and loads
// its secret, which it creates the first time. The error is a [*LockedError]
// while another process has the folder open.
func Open(path string) (*Dir, error) {
	path, err := create(path)
	if err != nil {
		return nil, err
	}
	lock, err := acquire(path)
	if err != nil {
		return nil, err
	}
	secret, err := loadOrCreate(path)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &Dir{path: path, secret: secret, lock: lock}, nil
}

// Path returns the folder's absolute path.
func (d *Dir) Path() string { return d.path }

// Database returns the path of the SQLite file, which may not exist yet.
func (d *Dir) Database() string { return DatabaseIn(d.path) }

// DatabaseIn returns the path of the SQLite file of a data folder.
func DatabaseIn(path string) string { return filepath.Join(path, databaseName) }

// SecretIn returns the path of the secret of a data folder.
func SecretIn(path string) string { return filepath.Join(path, secretName) }

// Secret returns a copy of the folder's [SecretSize] secret bytes.
func (d *Dir) Secret() []byte { return append([]byte(nil), d.secret...) }

// Close releases the lock. The store in the folder must be closed before.
func (d *Dir) Close() error {
	if err := d.lock.Close(); err != nil {
		return fmt.Errorf("unlock data folder %s: %w", d.path, err)
	}
	return nil
}

// create makes the folder with everything above it and returns its absolute
// path, so that a later change of the working directory moves nothing.
func create(path string) (string, error) {
	if path == "" {
		return "", errors.New("open data folder: its path is empty; name one with --data DIR")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("open data folder %s: %w", path, err)
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return "", fmt.Errorf("create data folder: %w; name another one with --data DIR", err)
	}
	return abs, nil
}

// syncDir makes the entries of a folder survive a power failure.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// exists says whether err is about a file that is already there.
func exists(err error) bool { return errors.Is(err, fs.ErrExist) }
