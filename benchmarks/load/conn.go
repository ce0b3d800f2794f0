package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// maxAnswer bounds an answer: the largest that likectl gives, 500 counts, is some
// 40 KB.
const maxAnswer = 4 << 20

// conn is one keep-alive HTTP/1.1 connection, used by one goroutine.
type conn struct {
	network, addr string
	timeout       time.Duration
	c             net.Conn
	in            []byte
}

var (
	errAnswer  = errors.New("not an HTTP/1.1 answer with a Content-Length")
	headerEnd  = []byte("\r\n\r\n")
	httpPrefix = []byte("HTTP/1.1 ")
	lengthName = []byte("content-length:")
	closeLine  = []byte("\r\nconnection: close\r\n")
)

// do sends a request and returns the status and the body, which is valid until the
// next call. After an error the next call dials anew.
func (c *conn) do(ctx context.Context, request []byte) (status int, body []byte, err error) {
	if c.c == nil {
		d := net.Dialer{Timeout: c.timeout}
		if c.c, err = d.DialContext(ctx, c.network, c.addr); err != nil {
			return 0, nil, fmt.Errorf("dial %s: %w", c.addr, err)
		}
	}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if err := c.c.SetDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, nil, err
	}
	if _, err := c.c.Write(request); err != nil {
		return 0, nil, fmt.Errorf("send: %w", err)
	}
	return c.answer()
}

// answer reads one answer.
func (c *conn) answer() (status int, body []byte, err error) {
	in := c.in[:0]
	head := -1
	want := 0
	for {
		if len(in) == cap(in) {
			in = append(in, 0)[:len(in)]
		}
		n, err := c.c.Read(in[len(in):cap(in)])
		in = in[:len(in)+n]
		c.in = in
		if err != nil {
			return 0, nil, fmt.Errorf("receive: %w", err)
		}
		if head < 0 {
			if head = bytes.Index(in, headerEnd); head < 0 {
				continue
			}
			var length int
			if status, length, err = parseHead(in[:head+2]); err != nil {
				return 0, nil, err
			}
			head += len(headerEnd)
			if want = head + length; want > maxAnswer {
				return 0, nil, fmt.Errorf("an answer of %d bytes, more than %d", want, maxAnswer)
			}
		}
		if len(in) > want {
			return 0, nil, fmt.Errorf("%d bytes behind the answer: %w", len(in)-want, errAnswer)
		}
		if len(in) == want {
			if lastAnswer(in[:head]) {
				c.close()
			}
			return status, in[head:want], nil
		}
	}
}

// parseHead reads the status and the length of the body from a head whose lines all
// end in CRLF.
func parseHead(head []byte) (status, length int, err error) {
	if len(head) < 12 || !bytes.HasPrefix(head, httpPrefix) {
		return 0, 0, fmt.Errorf("%.40q: %w", head, errAnswer)
	}
	for _, d := range head[9:12] {
		if d < '0' || d > '9' {
			return 0, 0, fmt.Errorf("%.40q: %w", head, errAnswer)
		}
		status = status*10 + int(d-'0')
	}
	length = -1
	for line := range bytes.Lines(head) {
		if len(line) < len(lengthName) || !bytes.EqualFold(line[:len(lengthName)], lengthName) {
			continue
		}
		length = 0
		for _, d := range bytes.TrimSpace(line[len(lengthName):]) {
			if d < '0' || d > '9' || length > maxAnswer {
				return 0, 0, fmt.Errorf("%.40q: %w", line, errAnswer)
			}
			length = length*10 + int(d-'0')
		}
	}
	if length < 0 {
		if status == 204 || status == 304 {
			return status, 0, nil
		}
		return 0, 0, errAnswer
	}
	return status, length, nil
}

// lastAnswer says whether the server closes the connection behind this answer.
func lastAnswer(head []byte) bool {
	at := bytes.IndexByte(head, '\n')
	for i := at - 1; i >= 0 && i < len(head)-len(closeLine); {
		if bytes.EqualFold(head[i:i+len(closeLine)], closeLine) {
			return true
		}
		next := bytes.IndexByte(head[i+2:], '\r')
		if next < 0 {
			return false
		}
		i += 2 + next
	}
	return false
}

func (c *conn) close() {
	if c.c != nil {
		_ = c.c.Close() // nothing is sent any more
		c.c = nil
	}
}
