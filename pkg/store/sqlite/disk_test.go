package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/store/sqlite"
)

// childLimit fills a "disk" whose files may not grow.
func childLimit(args []string) error {
	signal.Ignore(syscall.SIGXFSZ)
	set := func(soft uint64) error {
		return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: soft, Max: ^uint64(0)})
	}
	const limit = 400 << 10
	return fill(args[0], func() error { return set(limit) }, func() error { return set(^uint64(0)) })
}

// childTmpfs fills a real file system. It needs a mount namespace of its own.
func childTmpfs(args []string) error {
	dir := args[0]
	mount := func(flags uintptr, size string) error {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, "size="+size); err != nil {
			return fmt.Errorf("mount tmpfs: %w", err)
		}
		return nil
	}
	if err := mount(0, "600k"); err != nil {
		return err
	}
	return fill(dir+"/likes.db", func() error { return nil }, func() error { return mount(syscall.MS_REMOUNT, "64m") })
}

// fill commits until the disk is full, then checks that the failed batch left
// nothing behind and that the store works again once there is room.
func fill(path string, limit, lift func() error) error {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	if err := limit(); err != nil {
		return err
	}
	acknowledged := int64(0)
	var full error
	var failed []store.Write
	for full == nil {
		failed = failed[:0]
		for i := range 100 {
			failed = append(failed, like(likes.UserID(acknowledged*100+int64(i)+1), 1))
		}
		if full = s.Commit(ctx, store.Commit{Writes: failed}, make([]store.Written, len(failed))); full == nil {
			acknowledged++
		}
	}
	fmt.Println(full)
	if !errors.Is(full, likes.ErrUnavailable) {
		return fmt.Errorf("after %d batches: want ErrUnavailable, got %w", acknowledged, full)
	}
	if err := holds(ctx, s, acknowledged*100); err != nil {
		return fmt.Errorf("while full: %w", err)
	}
	if err := probedFull(ctx, s); err != nil {
		return err
	}
	if err := lift(); err != nil {
		return err
	}
	if err := s.ProbeWrite(ctx); err != nil {
		return fmt.Errorf("probe with room again: %w", err)
	}
	if err := s.Commit(ctx, store.Commit{Writes: failed}, make([]store.Written, len(failed))); err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	if err := holds(ctx, s, (acknowledged+1)*100); err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	return s.Close()
}

// probedFull checks that a probe notices, at the latest when it has filled with its
// own page what a batch left.
func probedFull(ctx context.Context, s *sqlite.Store) error {
	for range 200 {
		if err := s.ProbeWrite(ctx); errors.Is(err, likes.ErrUnavailable) {
			return nil
		} else if err != nil {
			return fmt.Errorf("probe while full: want ErrUnavailable, got %w", err)
		}
	}
	return errors.New("probe while full: it succeeds")
}

// holds checks that item 1 has so many likes, by its counter and by its edges.
func holds(ctx context.Context, s *sqlite.Store, n int64) error {
	a, err := s.AuditItem(ctx, []store.Key{{Counter: likes.Likes, Item: likes.Item{Type: 1, ID: 1}}})
	if err != nil {
		return err
	}
	out := make([]store.CountRow, 1)
	if err := s.Counts(ctx, likes.Likes, []likes.Item{{Type: 1, ID: 1}}, out); err != nil {
		return err
	}
	if len(a.Drifts) > 0 || out[0].N != n || n == 0 {
		return fmt.Errorf("want %d likes, the counter has %d, drifts %v", n, out[0].N, a.Drifts)
	}
	return nil
}

func TestFilesThatMayNotGrow(t *testing.T) {
	cmd := child(t, "rlimit", t.TempDir()+"/likes.db")
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "nothing was applied")
}

func TestFullDisk(t *testing.T) {
	cmd := child(t, "tmpfs", t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.Output()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
		t.Skipf("needs user namespaces: %v", err)
	}
	require.NoError(t, err)
	require.Contains(t, string(out), "is full: what was acknowledged is safe")
}
