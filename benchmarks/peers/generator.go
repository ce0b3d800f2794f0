package main

import (
	"context"
	"errors"
	"io"
	"net"
	"time"
)

// nothing is a server that answers every request with the same bytes, for measuring
// the load generator itself.
const (
	nothingRequest = "GET / HTTP/1.1\r\nHost: nothing\r\n\r\n"
	nothingAnswer  = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"count\":1}"
)

// serveNothing serves connections until the process ends. A client sends one request
// at a time.
func serveNothing(ctx context.Context, addr string) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	go func() {
		<-ctx.Done()
		_ = l.Close() // it ends Accept
	}()
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		} else if err != nil {
			return err
		}
		go func() {
			defer c.Close() //nolint:errcheck // the client is gone
			in := make([]byte, 4096)
			for {
				if _, err := c.Read(in); err != nil {
					return
				}
				if _, err := io.WriteString(c, nothingAnswer); err != nil {
					return
				}
			}
		}()
	}
}

// generated measures the load generator against a server that does nothing, as fast
// as it is answered or at a rate.
func (l *lab) generated(ctx context.Context, connections int, rate float64, d time.Duration) (s Sample, err error) {
	p, err := l.front(ctx, "nothing", "")
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	s, _, err = drive(ctx, p.addr, connections, rate, d, map[string]int{server: p.pid()}, func(_ int, to *tally) *script {
		return &script{to: to, good: status200, next: func(b []byte) ([]byte, int64) { return append(b, nothingRequest...), 1 }}
	})
	return s, err
}

// raw measures the least that a client can do: write the same bytes, read as many as
// the answer has.
func (l *lab) raw(ctx context.Context, connections int, d time.Duration) (s Sample, err error) {
	p, err := l.front(ctx, "nothing", "")
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	socket := make([]net.Conn, connections)
	answer := make([][]byte, connections)
	for i := range socket {
		if socket[i], err = new(net.Dialer).DialContext(ctx, "tcp", p.addr); err != nil {
			return s, err
		}
		defer socket[i].Close() //nolint:errcheck // nothing is sent any more
		answer[i] = make([]byte, len(nothingAnswer))
	}
	m := newMeter(true, map[string]int{server: p.pid()})
	s, err = callers(ctx, connections, d, func(_ context.Context, i int) error {
		if _, err := io.WriteString(socket[i], nothingRequest); err != nil {
			return err
		}
		_, err := io.ReadFull(socket[i], answer[i])
		return err
	})
	s.CPU = m.perLike(s.Done)
	return s, err
}
