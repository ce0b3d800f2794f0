package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lab is what all cases share: the servers, the programs, a folder.
type lab struct {
	dir       string
	likectl   string // the binary
	token     string // of a service
	data      string // likectl's data folder
	base      string // PocketBase's binary
	self      string
	pg        *databases
	always    *redisServer
	everysec  *redisServer
	settings  []Setting
	fdatasync time.Duration
	closers   []func() error
}

// Setting is what a server says of itself.
type Setting struct {
	Server string `json:"server"`
	Name   string `json:"name"`
	Value  string `json:"value"`
}

// pocketToolchain is the Go that PocketBase's module asks for.
const pocketToolchain = "go1.27.3"

// openLab starts the servers, builds the programs, and reads the servers' durability.
func openLab(ctx context.Context) (l *lab, err error) {
	l = &lab{}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	if l.dir, err = os.MkdirTemp("", "likectl-peers"); err != nil {
		return l, err
	}
	l.closers = append(l.closers, func() error { return os.RemoveAll(l.dir) })
	if l.self, err = os.Executable(); err != nil {
		return l, err
	}
	if err := l.programs(ctx); err != nil {
		return l, err
	}
	if l.pg, err = openDatabases(ctx); err != nil {
		return l, err
	}
	l.closers = append(l.closers, func() error { return l.pg.close(context.WithoutCancel(ctx)) })
	if l.settings, err = l.pg.durability(ctx); err != nil {
		return l, err
	}
	for _, r := range []struct {
		server *(*redisServer)
		fsync  string
	}{{&l.always, "always"}, {&l.everysec, "everysec"}} {
		if *r.server, err = openRedis(ctx, r.fsync); err != nil {
			return l, err
		}
		l.closers = append(l.closers, (*r.server).close)
		said, err := (*r.server).durability(ctx, r.fsync)
		if err != nil {
			return l, err
		}
		l.settings = append(l.settings, said...)
	}
	said, err := l.baseSettings(ctx)
	if err != nil {
		return l, err
	}
	l.settings = append(l.settings, said...)
	l.fdatasync, err = measureFdatasync(l.dir)
	return l, err
}

// programs builds likectl and PocketBase and makes a token.
func (l *lab) programs(ctx context.Context) error {
	l.likectl, l.base, l.data = filepath.Join(l.dir, "likectl"), filepath.Join(l.dir, "pocketbase"), filepath.Join(l.dir, "data")
	if err := build(ctx, "", l.likectl, "likectl/cmd/likectl"); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("find the module: %w", err)
	}
	module := filepath.Join(strings.TrimSpace(string(out)), "benchmarks", "peers", "pocketbase")
	if err := build(ctx, module, l.base, ".", "GOTOOLCHAIN="+pocketToolchain, "GOWORK=off"); err != nil {
		return err
	}
	token, err := exec.CommandContext(ctx, l.likectl, "token", "--user", "1", "--scope", "service", "--create", "--data", l.data).Output() //nolint:gosec // our own program
	if err != nil {
		return fmt.Errorf("make a token: %w", err)
	}
	l.token = strings.TrimSpace(string(token))
	return nil
}

// close ends everything, in reverse.
func (l *lab) close() error {
	var errs []error
	for _, end := range slices.Backward(l.closers) {
		errs = append(errs, end())
	}
	l.closers = nil
	return errors.Join(errs...)
}

// measureFdatasync returns the median time of a flush of 8 kB in a folder: what a
// commit costs on this machine at least.
func measureFdatasync(dir string) (time.Duration, error) {
	f, err := os.CreateTemp(dir, "fdatasync")
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // its content is nothing
	block := make([]byte, 8192)
	took := make([]time.Duration, 200)
	for i := range took {
		if _, err := f.WriteAt(block, 0); err != nil {
			return 0, err
		}
		start := time.Now()
		if err := unix.Fdatasync(int(f.Fd())); err != nil { //nolint:gosec // a descriptor is small
			return 0, err
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}
