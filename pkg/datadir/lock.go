package datadir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// LockedError says that another process has the data folder open.
type LockedError struct {
	Path string
	// PID is the process that holds the lock, 0 if it has not said so yet.
	PID int
}

// Error names the holder and the two ways out.
func (e *LockedError) Error() string {
	holder, stop := "another process", "stop it"
	if e.PID > 0 {
		holder = fmt.Sprintf("process %d", e.PID)
		stop = fmt.Sprintf("stop it (kill %d)", e.PID)
	}
	return fmt.Sprintf("data folder %s is in use by %s; its data is safe, and only one process may open it: "+
		"send the command to the running server with --admin URL, or %s and try again", e.Path, holder, stop)
}

// acquire locks the folder and writes this process's pid into the lock file.
// The file is never removed: a process that waits on a removed file and one
// that creates it anew would both hold "the" lock.
func acquire(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data folder: %w", err)
	}
	if err := flock(f); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = &LockedError{Path: dir, PID: holder(f)}
		} else {
			err = fmt.Errorf("lock data folder %s: %w; it must be on a local file system that supports flock", dir, err)
		}
		return nil, errors.Join(err, f.Close())
	}
	if err := writePID(f); err != nil {
		return nil, errors.Join(fmt.Errorf("lock data folder %s: %w", dir, err), f.Close())
	}
	return f, nil
}

// flock takes the exclusive lock or fails at once with EWOULDBLOCK.
func flock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// holder reads the pid that the lock's holder wrote, 0 if there is none.
func holder(f *os.File) int {
	const enough = 32
	text, err := io.ReadAll(io.NewSectionReader(f, 0, enough))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}
