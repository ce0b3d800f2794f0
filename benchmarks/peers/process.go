package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// process is a server program of this machine.
type process struct {
	addr string
	log  string
	cmd  *exec.Cmd
	done chan error
}

// patience is for a server's start and end.
const patience = 30 * time.Second

// startProcess starts a program and returns once it accepts connections. args gets
// the address that it is to listen on.
func startProcess(ctx context.Context, dir string, env []string, bin string, args func(addr string) []string) (*process, error) {
	addr, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	p := &process{addr: addr, log: filepath.Join(dir, filepath.Base(bin)+".log"), done: make(chan error, 1)}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()                        //nolint:errcheck // the process has its own copy
	p.cmd = exec.Command(bin, args(addr)...) //nolint:gosec,noctx // our own programs; stop ends them
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { p.done <- p.cmd.Wait() }()
	if err := p.accepts(ctx); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// accepts waits until the program accepts connections.
func (p *process) accepts(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var d net.Dialer
	for {
		conn, err := d.DialContext(ctx, "tcp", p.addr)
		if err == nil {
			return conn.Close()
		}
		select {
		case end := <-p.done:
			p.done <- end
			return fmt.Errorf("%s has ended: %w\n%s", p.cmd.Path, end, p.tail())
		case <-ctx.Done():
			return fmt.Errorf("%s does not listen on %s: %w\n%s", p.cmd.Path, p.addr, err, p.tail())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// stop ends the program in good order: it closes its sessions.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.done: //nolint:errcheck // how it ends is not what is measured
		return nil
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("%s did not end: it was killed", p.cmd.Path), p.cmd.Process.Kill())
	}
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// tail returns the end of what the program printed.
func (p *process) tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}

func freeAddr(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// build builds a program of this repository, or of a module in dir.
func build(ctx context.Context, dir, out, pkg string, env ...string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", out, pkg) //nolint:gosec // our own packages
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", pkg, err, text)
	}
	return nil
}
