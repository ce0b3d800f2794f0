package main

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"likectl/benchmarks/bench"
)

// Sample is what one case did in one round.
type Sample struct {
	// Rate is in likes, or reads, per second.
	Rate float64 `json:"per_s"`
	// Done is how many were answered as wanted in the whole round.
	Done int64 `json:"done"`
	// CPU is the processor time by process, in microseconds per like or read. The
	// load generator is one of them, or the own process where both are one.
	CPU map[string]float64 `json:"cpu_us"`
	// Syncs are fsyncs of the database's log per like, WAL bytes of log; 0 where
	// nobody counts them.
	Syncs float64 `json:"fsyncs,omitempty"`
	WAL   float64 `json:"wal_bytes,omitempty"`
	// P50 and P99 are latencies in milliseconds, 0 where none are taken.
	P50 float64 `json:"p50_ms,omitempty"`
	P99 float64 `json:"p99_ms,omitempty"`
	// Drifted is how many counts differ from their edges; only a system that is
	// shown for it may have any.
	Drifted int64 `json:"drifted,omitempty"`
	// Extra are measures of one case alone, by name.
	Extra map[string]float64 `json:"extra,omitempty"`
}

// Roles of processes in Sample.CPU.
const (
	own      = "load"     // this process: the load generator, or the callers
	server   = "server"   // what answers HTTP
	database = "database" // Postgres or Redis
	client   = "client"   // pgbench
)

// meter adds up the processor time of processes from one instant to another.
type meter struct {
	pids   map[string]int
	self   bool // this process too, without its children: they are the servers
	before map[string]time.Duration
}

// newMeter starts to count.
func newMeter(self bool, pids map[string]int) *meter {
	m := &meter{pids: pids, self: self}
	m.before = m.read()
	return m
}

func (m *meter) read() map[string]time.Duration {
	out := make(map[string]time.Duration, len(m.pids)+1)
	for name, pid := range m.pids {
		out[name] = bench.CPU(pid)
	}
	if m.self {
		out[own] = selfCPU()
	}
	return out
}

// perLike returns the time since the start, for each of n likes.
func (m *meter) perLike(n int64) map[string]float64 {
	out := make(map[string]float64, len(m.pids)+1)
	for name, cpu := range m.read() {
		out[name] = perOne(cpu-m.before[name], n)
	}
	return out
}

// selfCPU returns the processor time of this process.
func selfCPU() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0 // never with these arguments (getrusage(2))
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// perOne is in microseconds.
func perOne(cpu time.Duration, n int64) float64 {
	return float64(cpu) / float64(time.Microsecond) / float64(max(n, 1))
}

// account is what a store holds after a round.
type account struct {
	edges, counted, drifted int64
}

// settle compares what a store holds with what was acknowledged. unsure are writes
// that failed or had no answer: they may be there or not.
func (a account) settle(acknowledged, unsure int64) error {
	switch {
	case a.drifted > 0 || a.edges != a.counted:
		return fmt.Errorf("%d counts differ from their edges: %d counted, %d edges", a.drifted, a.counted, a.edges)
	case a.edges < acknowledged || a.edges > acknowledged+unsure:
		return fmt.Errorf("%d likes were acknowledged and %d had no good answer, but there are %d edges", acknowledged, unsure, a.edges)
	default:
		return nil
	}
}
