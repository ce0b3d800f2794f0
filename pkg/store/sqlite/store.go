// Package sqlite keeps edges and counters in one SQLite file: the store of the
// embedded server, with nothing to install.
//
// One connection writes and a few read. SQLite has one writer at a time in any
// case, and a single connection makes that a queue instead of retries; the
// caller's batches fill it. In WAL mode readers work on snapshots, never wait
// for the writer, and see every commit that was acknowledged before they began.
//
// A batch is one BEGIN IMMEDIATE transaction: all registers are read in one
// statement, the rules of [likes.Register] decide in Go, and rows are written
// many per statement. Events of tallies are inserted where they are not there
// yet, and their counters moved, in the same way. synchronous=FULL makes COMMIT return only after an fsync
// of the WAL, so a power failure takes back nothing that was acknowledged;
// TestEveryCommitIsSynced counts the system calls. By hand:
//
//	strace -f -e trace=fsync,fdatasync,pwrite64 -P DIR/likes.db-wal likectl serve --data DIR
//
// Only one process may have the file open: see package datadir.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/userhash"
)

// minReaders lets a few reads proceed beside a slow walk on a small machine.
const minReaders = 4

// Store is an open database.
type Store struct {
	path    string
	writer  pool
	readers pool
	// closed is closed by the first Close.
	closed chan struct{}
	once   sync.Once
	// hashKey is the key of erased users' hashes.
	hashKey userhash.Key
	// floors belongs to the transaction that holds the writer.
	floors floors
	// batch is the scratch memory of the transaction that holds the writer.
	batch batch
}

var (
	_ store.Edges     = (*Store)(nil)
	_ store.Tallies   = (*Store)(nil)
	_ store.Auditor   = (*Store)(nil)
	_ store.Walker    = (*Store)(nil)
	_ store.ItemTypes = (*Store)(nil)
	_ store.People    = (*Store)(nil)
)

// Open opens the database file, creates it with mode 0600 if it is missing, and
// brings its schema up to date. It refuses a damaged file and one that a newer
// version has written, without changing either.
func Open(ctx context.Context, path string) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	if _, err := SchemaUp(ctx, path); err != nil {
		return nil, err
	}
	readers := max(minReaders, runtime.GOMAXPROCS(0))
	s := &Store{
		path:    path,
		writer:  make(pool, 1),
		readers: make(pool, readers),
		closed:  make(chan struct{}),
	}
	if err := s.connect(ctx, readers); err != nil {
		return nil, errors.Join(likes.Errorf(likes.ErrUnavailable, "open database: %w", explain(path, err)), s.drop())
	}
	return s, nil
}

// connect opens the writer and the readers.
func (s *Store) connect(ctx context.Context, readers int) error {
	w, err := dial(ctx, s.path, writerPragmas)
	if err != nil {
		return err
	}
	s.writer <- w
	if err := s.loadFloors(ctx, w); err != nil {
		return err
	}
	for range readers {
		r, err := dial(ctx, s.path, readerPragmas)
		if err != nil {
			return err
		}
		s.readers <- r
	}
	return nil
}

// createPrivate creates a missing file readable by its owner only, which SQLite
// then copies to the WAL. An existing file is not touched: closing a descriptor
// of it would drop the locks that other connections of this process hold.
func createPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// Close waits for the calls in flight and closes the file; later calls get
// ErrUnavailable. Closing twice is fine.
func (s *Store) Close() error {
	var err error
	s.once.Do(func() {
		close(s.closed)
		var errs []error
		// The writer last: the last connection moves the WAL into the database.
		for _, p := range []pool{s.readers, s.writer} {
			for range cap(p) {
				c := <-p
				errs = append(errs, c.close())
			}
		}
		err = errors.Join(errs...)
	})
	if err != nil {
		return fmt.Errorf("close database %s: %w; what was acknowledged is safe in the file and its WAL", s.path, err)
	}
	return nil
}

// drop closes what a failed Open has opened.
func (s *Store) drop() error {
	var errs []error
	for _, p := range []pool{s.readers, s.writer} {
		for range len(p) {
			c := <-p
			errs = append(errs, c.close())
		}
	}
	return errors.Join(errs...)
}

// Now reads this machine's clock: an embedded store has no other one.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, likes.Errorf(likes.ErrUnavailable, "read the clock: %w", err)
	}
	return time.Now().UTC(), nil
}

// pool holds idle connections.
type pool chan *conn

// take waits for an idle connection. Its errors are ErrUnavailable: nothing has
// been sent to the database.
func (s *Store) take(ctx context.Context, p pool, op string) (*conn, error) {
	// Checked first: of several ready cases select takes any.
	if err := ctx.Err(); err != nil {
		return nil, likes.Errorf(likes.ErrUnavailable, "%s: %w", op, err)
	}
	select {
	case <-s.closed:
		return nil, likes.Errorf(likes.ErrUnavailable, "%s: the database is closed", op)
	default:
	}
	select {
	case <-ctx.Done():
		return nil, likes.Errorf(likes.ErrUnavailable, "%s: waiting for a connection: %w", op, ctx.Err())
	case <-s.closed:
		return nil, likes.Errorf(likes.ErrUnavailable, "%s: the database is closed", op)
	case c := <-p:
		return c, nil
	}
}

// write runs fn in a transaction of the writer. Once the transaction has begun,
// the end of ctx no longer stops it: it is short, and half of its answers would
// only turn a known outcome into an uncertain one.
func (s *Store) write(ctx context.Context, op string, fn func(context.Context, *conn) error) error {
	c, err := s.take(ctx, s.writer, op)
	if err != nil {
		return err
	}
	defer func() { s.writer <- c }()
	ctx = context.WithoutCancel(ctx)
	if err := c.exec(ctx, begin, 1); err != nil {
		return s.refused(op, err)
	}
	if err := fn(ctx, c); err != nil {
		c.rollback(ctx)
		return s.refused(op, err)
	}
	if err := c.exec(ctx, commit, 1); err != nil {
		c.rollback(ctx)
		return s.failedCommit(op, err)
	}
	return nil
}

// read runs fn on a reader.
func (s *Store) read(ctx context.Context, op string, fn func(*conn) error) error {
	c, err := s.take(ctx, s.readers, op)
	if err != nil {
		return err
	}
	defer func() { s.readers <- c }()
	if err := fn(c); err != nil {
		return likes.Errorf(likes.ErrUnavailable, "%s: %w", op, explain(s.path, err))
	}
	return nil
}

// snapshot runs fn on a reader, with one snapshot for all its queries.
func (s *Store) snapshot(ctx context.Context, op string, fn func(*conn) error) error {
	return s.read(ctx, op, func(c *conn) error {
		if err := c.exec(ctx, beginRead, 1); err != nil {
			return err
		}
		// A read transaction has nothing to lose: it always ends by a rollback.
		defer c.rollback(context.WithoutCancel(ctx))
		return fn(c)
	})
}
