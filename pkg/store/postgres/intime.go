package postgres

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// A statement that its sender has given up may still be under way: in a buffer
// of a kernel that goes on sending, or before a server that stood still. It
// would then be the last operation on its edges, behind others that were
// answered since, and an issued operation always wins. So every issued batch
// says until when, by the server's clock, it may begin, which is until its
// sender gives up; later the server applies nothing of it. Replays need none of
// this: their clocks say where they belong.

// errLate: the server got a batch after its time and applied nothing of it. The
// sender sees it only if it was wrong about the server's clock.
var errLate = errors.New("it came after the time until which it may begin")

// serverClock estimates the server's clock on top of this process's monotonic
// clock.
type serverClock struct {
	started time.Time    // has the monotonic reading
	ahead   atomic.Int64 // microseconds: the server's clock minus the time since started
}

// read notes a reading that has just arrived. The server took it earlier, so
// the estimate is behind the server's clock by up to the answer's way here: it
// errs on the side of refusing.
func (c *serverClock) read(server time.Time) {
	c.ahead.Store(server.UnixMicro() - time.Since(c.started).Microseconds())
}

// at returns what the server's clock shows at an instant, in microseconds since
// 1970.
func (c *serverClock) at(t time.Time) int64 {
	return t.Sub(c.started).Microseconds() + c.ahead.Load()
}

// inTime returns until when a statement may begin: until the context's end.
func (s *Store) inTime(ctx context.Context) int64 {
	end, ok := ctx.Deadline()
	if !ok { // not from Commit, which sets one
		end = time.Now().Add(s.timeout)
	}
	return s.server.at(end) - epoch2000
}

// observe reads the server's clock over a new connection: after a fail-over it
// is another server's.
func (s *Store) observe(ctx context.Context, conn *pgx.Conn) error {
	var now time.Time
	if err := conn.QueryRow(ctx, nowStatement).Scan(&now); err != nil {
		return err
	}
	s.server.read(now)
	return nil
}
