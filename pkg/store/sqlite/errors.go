package sqlite

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"likectl/pkg/likes"
)

// refused is the error of a transaction that failed before its commit: SQLite
// has rolled it back, or never began it.
func (s *Store) refused(op string, err error) error {
	return likes.Errorf(likes.ErrUnavailable, "%s: nothing was applied: %w", op, explain(s.path, err))
}

// failedCommit is the error of a COMMIT that failed. To this process it always
// looks as if it had not happened. But where all its frames reached the WAL
// and only a later step failed (the fsync, or the index in shared memory), a
// crash before the next commit overwrites them would make recovery apply them.
// When the frames could not be written whole, their checksums keep them out.
func (s *Store) failedCommit(op string, err error) error {
	switch full := code(err); {
	case full&primary == lib.SQLITE_FULL, full&primary == lib.SQLITE_BUSY, full == lib.SQLITE_IOERR_WRITE:
		return s.refused(op, err)
	default:
		return likes.Errorf(likes.ErrUncertain, "%s: may have been applied, repeating it is safe: %w", op, explain(s.path, err))
	}
}

// primary masks the result code of which an extended code is a special case.
const primary = 0xff

// code returns SQLite's extended result code, 0 if err is not SQLite's.
func code(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code()
}

// explain adds to SQLite's message what it means for the data and what to do.
func explain(path string, err error) error {
	switch code(err) & primary {
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		return fmt.Errorf("the file %s is damaged or not a database, and likes in it may be lost: stop likectl, copy the folder away, "+
			"then put back a backup or save what is readable with: sqlite3 %s .recover | sqlite3 recovered.db (%w)", path, path, err)
	case lib.SQLITE_FULL:
		return fmt.Errorf("the disk that holds %s is full: what was acknowledged is safe; free some space and repeat (%w)", path, err)
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return fmt.Errorf("another program has locked %s: end it (a sqlite3 shell, a backup) and repeat (%w)", path, err)
	case lib.SQLITE_READONLY, lib.SQLITE_PERM, lib.SQLITE_CANTOPEN:
		return fmt.Errorf("%s cannot be opened for writing: check owner and mode of the file and its folder (%w)", path, err)
	case lib.SQLITE_IOERR:
		return fmt.Errorf("the disk that holds %s fails: see the kernel's log (dmesg) and check the disk before going on (%w)", path, err)
	default:
		return err
	}
}
