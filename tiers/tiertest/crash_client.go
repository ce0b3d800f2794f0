package tiertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

const (
	crashClients = 64
	// crashOwners clients have a user each that nobody else acts for, so that
	// its last acknowledged operation is known without a search. The others
	// share users in pairs.
	crashOwners = 50
	crashItems  = 5
	crashUsers  = crashOwners + (crashClients-crashOwners)/2
)

// crashServer is a process with the gate that its clients pass for each call.
type crashServer struct {
	*Server
	gate sync.RWMutex
}

// crashRun is a crash suite at work.
type crashRun struct {
	target  CrashTarget
	servers []*crashServer
	http    *http.Client
	h       *History
	items   []likes.ItemID
	report  Report

	lastAcked int
	refused   atomic.Int64

	mu         sync.Mutex
	violations []error
	lastErr    error
}

func newCrashRun(t *testing.T, target CrashTarget) *crashRun {
	t.Helper()
	c := &crashRun{target: target, h: NewHistory(), http: newHTTPClient(), report: Report{Seed: Seed()}}
	t.Cleanup(c.http.CloseIdleConnections)
	// A server that hangs must not hang the suite; one that is slow must not
	// be taken for one that is dead.
	c.http.Timeout = patience
	for n := range orDefault(target.Servers, 1) {
		env := append([]string{"PGAPPNAME=" + AppName(n)}, target.Env...)
		c.servers = append(c.servers, &crashServer{Server: StartServer(t, target.Binary, env, target.Args...)})
	}
	for i := range crashItems {
		c.items = append(c.items, likes.ItemID(1+i))
	}
	return c
}

func (c *crashRun) violation(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.violations = append(c.violations, err)
}

func (c *crashRun) noteError(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastErr = err
}

func (c *crashRun) lastError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastErr
}

func (c *crashRun) api(n int) client {
	return client{http: c.http, base: c.servers[n%len(c.servers)].URL, token: c.target.ServiceToken}
}

// client likes, unlikes and reads until the context ends. What it asks is
// determined by the seed, when it is asked is not.
func (c *crashRun) client(ctx context.Context, n int) {
	rng := rand.New(rand.NewPCG(c.report.Seed, uint64(n)))
	user := likes.UserID(1 + n)
	if n >= crashOwners {
		user = likes.UserID(1 + crashOwners + (n-crashOwners)/2)
	}
	server := c.servers[n%len(c.servers)]
	call := context.WithoutCancel(ctx) // the last one is answered too
	for ctx.Err() == nil {
		server.gate.RLock()
		if item := c.items[rng.IntN(len(c.items))]; rng.IntN(10) == 0 {
			c.reads(call, n, user)
		} else {
			c.write(call, n, user, item, rng.IntN(2) == 0)
		}
		server.gate.RUnlock()
	}
}

func edgeOf(user likes.UserID, item likes.ItemID) likes.Edge {
	return likes.Edge{Counter: likes.Likes, Item: likes.Item{Type: 1, ID: item}, User: user}
}

func (c *crashRun) write(ctx context.Context, n int, user likes.UserID, item likes.ItemID, like bool) {
	method, kind := http.MethodDelete, KindUnlike
	if like {
		method, kind = http.MethodPost, KindLike
	}
	body := fmt.Sprintf(`{"user_id":"%d","item_id":"%d","item_type":"%s"}`, user, item, typeName)
	e := Event{Client: n, Kind: kind, Edge: edgeOf(user, item), Call: c.h.Begin()}
	a, err := c.api(n).do(ctx, method, "/v1/like", body)
	var r reply
	if err == nil {
		r, err = a.reply()
	}
	switch {
	case err == nil && a.status == http.StatusOK:
		if r.Changed != nil {
			e.Exact, e.Changed = true, *r.Changed
		}
		count := Event{Client: n, Kind: KindCount, Edge: edgeOf(0, item), Call: e.Call, N: r.Count, Beside: true}
		c.h.End(&e, &count)
	case neverSent(err), err == nil && nothingApplied(r.Error):
		c.refused.Add(1)
		c.h.End()
		c.noteError(errors.Join(err, fmt.Errorf("%d %s", a.status, r.Error)))
	case err == nil && a.status < http.StatusInternalServerError:
		c.h.End()
		c.violation(fmt.Errorf("%s of a valid like: %d %.200s", method, a.status, a.body))
	default: // the connection broke, or the server does not know either
		e.Uncertain = true
		c.h.End(&e)
		c.noteError(errors.Join(err, fmt.Errorf("%d %s", a.status, r.Error)))
	}
}

// nothingApplied are the codes of the API that say so.
func nothingApplied(code string) bool {
	return code == "unavailable" || code == "overloaded" || code == "fenced"
}

// neverSent reports whether a connection could not even be made.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// reads records the user's memberships and all counts; a read that fails says
// nothing.
func (c *crashRun) reads(ctx context.Context, n int, user likes.UserID) {
	call := c.h.Begin()
	counts, err := c.api(n).counts(ctx, c.items)
	if err != nil {
		c.h.End()
		return
	}
	c.h.End(countEvents(n, call, counts)...)
	call = c.h.Begin()
	liked, err := c.hasOf(ctx, n, user)
	if err != nil {
		c.h.End()
		return
	}
	c.h.End(hasEvents(n, call, user, liked)...)
}

func countEvents(n int, call int64, counts map[likes.ItemID]int64) []*Event {
	var events []*Event
	for item, count := range counts {
		events = append(events, &Event{Client: n, Kind: KindCount, Edge: edgeOf(0, item), Call: call, N: count})
	}
	return events
}

func hasEvents(n int, call int64, user likes.UserID, liked map[likes.ItemID]bool) []*Event {
	var events []*Event
	for item, yes := range liked {
		events = append(events, &Event{Client: n, Kind: KindHas, Edge: edgeOf(user, item), Call: call, Liked: yes})
	}
	return events
}

// hasOf reads a user's memberships with the service's token.
func (c *crashRun) hasOf(ctx context.Context, n int, user likes.UserID) (map[likes.ItemID]bool, error) {
	ids := make([]string, len(c.items))
	for i, item := range c.items {
		ids[i] = fmt.Sprintf(`"%d"`, item)
	}
	body := fmt.Sprintf(`{"user_id":"%d","item_type":"%s","item_ids":[%s]}`, user, typeName, strings.Join(ids, ","))
	a, err := c.api(n).do(ctx, http.MethodPost, "/v1/has_liked", body)
	if err != nil {
		return nil, err
	}
	r, err := a.ok()
	if err != nil {
		return nil, err
	}
	liked := make(map[likes.ItemID]bool, len(c.items))
	for _, item := range c.items {
		yes, ok := r.Liked[strconv.FormatInt(int64(item), 10)]
		if !ok {
			return nil, fmt.Errorf("no answer for item %d in %.200q", item, a.body)
		}
		liked[item] = yes
	}
	return liked, nil
}

// readAll reads everything while nothing is in flight; it becomes part of the
// history. Reads right after a database has come back may still fail, so each is
// repeated until it answers.
func (c *crashRun) readAll(t *testing.T) (map[likes.Edge]bool, map[likes.ItemID]int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	state := map[likes.Edge]bool{}
	var counts map[likes.ItemID]int64
	for user := likes.UserID(1); user <= crashUsers; user++ {
		call, liked := untilAnswered(ctx, t, c.h, func() (map[likes.ItemID]bool, error) { return c.hasOf(ctx, int(user), user) })
		c.h.End(hasEvents(crashClients, call, user, liked)...)
		for item, yes := range liked {
			state[edgeOf(user, item)] = yes
		}
	}
	for n := range c.servers {
		var call int64
		call, counts = untilAnswered(ctx, t, c.h, func() (map[likes.ItemID]int64, error) { return c.api(n).counts(ctx, c.items) })
		c.h.End(countEvents(crashClients, call, counts)...)
	}
	return state, counts
}

// untilAnswered repeats a read and returns the beginning of the one that
// succeeded.
func untilAnswered[A any](ctx context.Context, t *testing.T, h *History, read func() (A, error)) (int64, A) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		call := h.Begin()
		a, err := read()
		if err == nil {
			return call, a
		}
		h.End()
		select {
		case <-ctx.Done():
			require.NoError(t, err, "reads do not come back")
		case <-tick.C:
		}
	}
}
