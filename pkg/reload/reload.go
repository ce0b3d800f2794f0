// Package reload reads small files again while a server uses them. The last good
// version is in force: a broken one is logged and changes nothing.
package reload

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"likectl/pkg/bounded"
	"likectl/pkg/likes"
)

// Config says which file is read. Only Read may be left out.
type Config struct {
	// Name is what the file is in errors and logs, such as "token_file".
	Name string
	Path string
	// MaxBytes bounds the file.
	MaxBytes int64
	// Every is how often the file is read again.
	Every time.Duration
	// Use puts a version in force or says what is wrong with it. It is called for
	// the first version and for those that differ from the one in force, one call
	// at a time.
	Use func(doc []byte) error
	// Read is told of every reading but the first, whose error is Open's.
	Read func(err error)
	Log  *slog.Logger
}

// File is a file that is read again until Close.
type File struct {
	cfg       Config
	sum       [sha256.Size]byte // of the version in force; zero, which no text has: none yet
	complaint string            // the last one logged
	stop      context.CancelFunc
	ended     sync.WaitGroup
}

// Open puts the first version in force and keeps up with the file until Close.
// Its error is ErrInvalid and names the file.
func Open(ctx context.Context, cfg Config) (*File, error) {
	if cfg.Every <= 0 {
		return nil, likes.Errorf(likes.ErrInvalid, "%s is read every %v, want more than 0", cfg.Name, cfg.Every)
	}
	f := &File{cfg: cfg}
	if _, err := f.read(); err != nil {
		return nil, likes.Errorf(likes.ErrInvalid, "%w", err)
	}
	ctx, f.stop = context.WithCancel(context.WithoutCancel(ctx))
	f.ended.Go(func() { f.follow(ctx) })
	return f, nil
}

// Close ends the reading. The last good version stays in force. A nil File is
// closed.
func (f *File) Close() {
	if f != nil {
		f.stop()
		f.ended.Wait()
	}
}

func (f *File) follow(ctx context.Context) {
	tick := time.NewTicker(f.cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f.refresh()
		}
	}
}

// refresh reads the file once and logs a change, and a failure once and not every
// few seconds.
func (f *File) refresh() {
	changed, err := f.read()
	if f.cfg.Read != nil {
		f.cfg.Read(err)
	}
	complaint := ""
	if err != nil {
		complaint = err.Error()
	}
	switch {
	case err != nil && complaint != f.complaint:
		f.cfg.Log.Error("a file is not read; its last good version stays in force", "file", f.cfg.Name, "error", err)
	case err == nil && (changed || f.complaint != ""):
		f.cfg.Log.Info("a file is read again", "file", f.cfg.Name, "changed", changed)
	}
	f.complaint = complaint
}

// read puts the file in force unless it is already. It reads all of it each time,
// since a modification time can stay the same.
func (f *File) read() (changed bool, err error) {
	doc, err := bounded.ReadFile(f.cfg.Path, f.cfg.MaxBytes)
	if err != nil {
		return false, fmt.Errorf("%s %s: %w", f.cfg.Name, f.cfg.Path, err)
	}
	sum := sha256.Sum256(doc)
	if sum == f.sum {
		return false, nil
	}
	if err := f.cfg.Use(doc); err != nil {
		return false, fmt.Errorf("%s %s: %w", f.cfg.Name, f.cfg.Path, err)
	}
	f.sum = sum
	return true, nil
}
