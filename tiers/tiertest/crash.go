package tiertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

// CrashTarget is what the crash suite kills: the real binary over a real
// database.
type CrashTarget struct {
	// Binary is the likectl under test, see [Build]; Args and Env are what its
	// serve command is given beside the addresses.
	Binary    string
	Args, Env []string
	// ServiceToken has the scope service.
	ServiceToken string
	// Servers is how many processes serve at once; 0: one.
	Servers int

	// KillDB ends the database as kill -9 does and returns once it is gone;
	// StartDB starts it and returns once it answers. Nil: it dies with likectl.
	KillDB, StartDB func(ctx context.Context) error
	// Quiesce returns once nothing that the process which died last as that
	// server has sent can still be carried out: the database has none of its
	// sessions, which bear [AppName]. Nil: that is so at once.
	Quiesce func(ctx context.Context, server int) error

	// Kills and DBKills are how often likectl and the database are killed; 0: 20
	// (or LIKECTL_KILLS) and, where KillDB is set, a quarter of that.
	Kills, DBKills int
	// Between is how many writes are acknowledged between kills; 0: 1000.
	Between int
	// Staleness is the contract's bound for counts.
	Staleness time.Duration
}

// AppName is the application_name of a server's sessions on Postgres.
func AppName(server int) string { return fmt.Sprintf("likectl-crash-%d", server) }

// Kill is what one kill met.
type Kill struct {
	What string
	// Acked writes since the kill before, and requests in flight at this one.
	Acked, InFlight int
	// Back is the time from the start of the replacement until it was ready.
	Back time.Duration
	// Lost edges: their state afterwards is not what was acknowledged.
	Lost int
	// Wrong items: their count afterwards is not the number of their edges.
	Wrong int
}

// Report is what a crash run did and found.
type Report struct {
	Seed  uint64
	Kills []Kill
	// Acked, Uncertain and Refused are how writes were answered.
	Acked, Uncertain, Refused int
	Events                    int
	// Lost and Wrong are the sums over all kills.
	Lost, Wrong int
}

// WriteTo prints the report as a table.
func (r Report) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(&b, "seed %d: %d kills, %d writes acknowledged, %d uncertain, %d refused, %d events; %d edges lost, %d counts wrong\n",
		r.Seed, len(r.Kills), r.Acked, r.Uncertain, r.Refused, r.Events, r.Lost, r.Wrong)
	row := func(columns ...any) { _, _ = fmt.Fprintln(tw, columns...) } // tw writes to memory
	row("kill\twhat\tacked since\tin flight\tback after\tlost\twrong")
	for i, k := range r.Kills {
		row(fmt.Sprintf("%d\t%s\t%d\t%d\t%v\t%d\t%d", i+1, k.What, k.Acked, k.InFlight, k.Back.Round(time.Millisecond), k.Lost, k.Wrong))
	}
	if err := tw.Flush(); err != nil {
		return 0, err
	}
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

// Crash kills likectl and its database over and over while 64 clients like and
// unlike. After every kill all edges are read back before traffic goes on, so
// that nothing can hide a loss, and in the end the whole history is judged.
func Crash(t *testing.T, target CrashTarget) Report {
	r, err := crash(t, target)
	require.NoError(t, err, "LIKECTL_SEED=%d", r.Seed)
	return r
}

// CrashCatches requires that the suite reports lost edges: the test of the suite
// itself, on a binary that acknowledges too early.
func CrashCatches(t *testing.T, target CrashTarget) Report {
	r, err := crash(t, target)
	require.Error(t, err, "the suite noticed nothing")
	require.Positive(t, r.Lost, "acknowledged writes were lost and the suite reports none")
	return r
}

// crash returns what was violated as an error; whatever else goes wrong fails
// the test.
func crash(t *testing.T, target CrashTarget) (Report, error) {
	c := newCrashRun(t, target)
	var clients sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer func() {
		stop()
		if !t.Failed() { // else clients may stand before a gate that stays closed
			clients.Wait()
		}
	}()
	for i := range crashClients {
		clients.Go(func() { c.client(ctx, i) })
	}
	for _, what := range c.plan() {
		acked, inFlight := c.loaded(t)
		k := Kill{What: what, Acked: acked, InFlight: inFlight}
		if what == killDB {
			k.Back = c.killDatabase(t)
		} else {
			k.Back = c.killServer(t, len(c.report.Kills)%len(c.servers))
		}
		k.Lost, k.Wrong = c.audit(t)
		c.lastAcked, _ = c.h.Load()
		for _, s := range c.servers {
			s.gate.Unlock()
		}
		c.report.Kills = append(c.report.Kills, k)
	}
	c.loaded(t)
	stop()
	clients.Wait()
	for _, s := range c.servers {
		s.gate.Lock()
	}
	c.audit(t)
	for _, s := range c.servers {
		s.gate.Unlock()
	}
	err := c.judge()
	_, werr := c.report.WriteTo(t.Output())
	return c.report, errors.Join(err, werr)
}

const (
	killLikectl = "likectl"
	killDB      = "database"
)

// plan is the order of kills: those of the database spread between the others.
func (c *crashRun) plan() []string {
	kills, dbKills := orDefault(c.target.Kills, scale("LIKECTL_KILLS", 20)), 0
	if c.target.KillDB != nil {
		dbKills = orDefault(c.target.DBKills, kills/4)
	}
	plan := slices.Repeat([]string{killLikectl}, kills)
	for i := range dbKills {
		plan = slices.Insert(plan, (i+1)*len(plan)/(dbKills+1), killDB)
	}
	return plan
}

func orDefault(n, def int) int {
	if n == 0 {
		return def
	}
	return n
}

// loaded waits until enough was acknowledged since the last kill and requests are
// in flight.
func (c *crashRun) loaded(t *testing.T) (acked, inFlight int) {
	t.Helper()
	between := orDefault(c.target.Between, 1000)
	deadline := time.NewTimer(2 * time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		total, inFlight := c.h.Load()
		if total-c.lastAcked >= between && inFlight > 0 {
			return total - c.lastAcked, inFlight
		}
		select {
		case <-deadline.C:
			require.Fail(t, "no load", "%d of %d writes acknowledged, %d in flight, last error %v", total-c.lastAcked, between, inFlight, c.lastError())
		case <-tick.C:
		}
	}
}

// killServer kills one process and returns how long its successor took, with all
// gates held: nothing is in flight.
func (c *crashRun) killServer(t *testing.T, n int) time.Duration {
	t.Helper()
	s := c.servers[n]
	require.NoError(t, s.Kill())
	s.gate.Lock()                // its clients have seen their connections break
	if c.target.Quiesce != nil { // before the successor has sessions of this name
		require.NoError(t, c.target.Quiesce(t.Context(), n))
	}
	began := time.Now()
	require.NoError(t, s.Start(t.Context()))
	back := time.Since(began)
	c.h.Barrier(func(client int) bool { return client%len(c.servers) == n })
	for i, other := range c.servers {
		if i != n {
			other.gate.Lock()
		}
	}
	return back
}

// killDatabase does the same to the database. Servers stay up, and come back
// without help.
func (c *crashRun) killDatabase(t *testing.T) time.Duration {
	t.Helper()
	require.NoError(t, c.target.KillDB(t.Context()))
	for _, s := range c.servers {
		s.gate.Lock() // what was in flight has been answered
	}
	require.NoError(t, c.target.StartDB(t.Context()))
	began := time.Now()
	for _, s := range c.servers {
		require.NoError(t, s.Ready(t.Context()))
	}
	c.h.Barrier(func(int) bool { return true })
	return time.Since(began)
}

// audit reads every edge and count while nothing is in flight and compares them
// with what was acknowledged and with each other.
func (c *crashRun) audit(t *testing.T) (lost, wrong int) {
	t.Helper()
	state, counts := c.readAll(t)
	for _, err := range CheckLast(c.h.Events(), state) {
		c.violation(err)
		lost++
	}
	liked := map[likes.ItemID]int64{}
	for g, yes := range state {
		if yes {
			liked[g.Item.ID]++
		}
	}
	for _, item := range slices.Sorted(maps.Keys(counts)) {
		if counts[item] != liked[item] {
			c.violation(fmt.Errorf("count of item %d is %d with %d edges", item, counts[item], liked[item]))
			wrong++
		}
	}
	c.report.Lost += lost
	c.report.Wrong += wrong
	return lost, wrong
}

// judge holds the whole history to the checks.
func (c *crashRun) judge() error {
	events := c.h.Events()
	c.report.Events = len(events)
	for _, e := range events {
		switch {
		case e.write() && e.Uncertain:
			c.report.Uncertain++
		case e.write():
			c.report.Acked++
		}
	}
	c.report.Refused = int(c.refused.Load())
	for _, k := range c.report.Kills {
		if k.InFlight < 1 || k.Acked < orDefault(c.target.Between, 1000) {
			c.violation(fmt.Errorf("a kill without load proves nothing: %+v", k))
		}
	}
	err := errors.Join(joinSome(c.violations), CheckEdges(events, 0), CheckCounts(events, c.target.Staleness))
	if err == nil {
		return nil
	}
	name, werr := WriteFile(events)
	return errors.Join(err, fmt.Errorf("the history of %d events is in %s", len(events), name), werr)
}
