package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"likectl/benchmarks/result"
	"likectl/pkg/retry"
	"likectl/pkg/scrape"
)

// watch reads the processor time of processes and their descendants.
type watch struct {
	names  []string
	pids   map[string]int
	from   map[string]time.Duration // at the start of the measurement
	last   map[string]time.Duration // at the last step
	lastAt time.Time
	ready  chan struct{}
}

func newWatch(pids map[string]int) *watch {
	w := &watch{pids: pids, ready: make(chan struct{})}
	for name := range pids {
		w.names = append(w.names, name)
	}
	slices.Sort(w.names)
	return w
}

// start notes the state after a while.
func (w *watch) start(ctx context.Context, after time.Duration) {
	go func() {
		defer close(w.ready)
		_ = retry.Sleep(ctx, after) // a context that ends ends the run too
		w.from, w.lastAt = w.read(), time.Now()
		w.last = w.from
	}()
}

// step returns the processors that each process used since the last step.
func (w *watch) step() map[string]float64 {
	<-w.ready
	if len(w.names) == 0 {
		return nil
	}
	now, at := w.read(), time.Now()
	used := make(map[string]float64, len(now))
	for name, cpu := range now {
		used[name] = float64(cpu-w.last[name]) / float64(at.Sub(w.lastAt))
	}
	w.last, w.lastAt = now, at
	return used
}

// stop returns what each process used in all.
func (w *watch) stop(requests int64) []result.Process {
	<-w.ready
	now := w.read()
	out := make([]result.Process, 0, len(w.names)+1)
	for _, name := range w.names {
		used := now[name] - w.from[name]
		out = append(out, result.Process{Name: name, CPU: used.Seconds(), PerRequest: perRequest(used, requests)})
	}
	return out
}

func (w *watch) read() map[string]time.Duration {
	times := processTimes()
	out := make(map[string]time.Duration, len(w.names))
	for _, name := range w.names {
		for pid, p := range times {
			if descends(times, pid, w.pids[name]) {
				out[name] += p.cpu
			}
		}
	}
	return out
}

// processTime is what /proc/PID/stat says.
type processTime struct {
	parent int
	cpu    time.Duration
}

// CPU returns the processor time that a process and its descendants have used.
func CPU(pid int) time.Duration {
	w := watch{names: []string{""}, pids: map[string]int{"": pid}}
	return w.read()[""]
}

// tick is the unit of /proc/PID/stat: USER_HZ, 100 on every Linux there is.
const tick = 10 * time.Millisecond

// processTimes reads all processes. Time of children that have ended is their
// parent's (cutime, cstime).
func processTimes() map[int]processTime {
	all := map[int]processTime{}
	paths, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well formed
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		pid, p, err := parseStat(b)
		if err == nil {
			all[pid] = p
		}
	}
	return all
}

var errStat = errors.New("not the stat of a process")

// parseStat reads a line of proc(5). The name may hold blanks and parentheses.
func parseStat(b []byte) (pid int, p processTime, err error) {
	open, closed := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 1 || closed < open {
		return 0, p, errStat
	}
	rest := bytes.Fields(b[closed+1:])
	if len(rest) < 15 {
		return 0, p, errStat
	}
	var fields [6]int
	for i, f := range [][]byte{bytes.TrimSpace(b[:open]), rest[1], rest[11], rest[12], rest[13], rest[14]} {
		if fields[i], err = strconv.Atoi(string(f)); err != nil {
			return 0, p, fmt.Errorf("%w: %w", errStat, err)
		}
	}
	ticks := fields[2] + fields[3] + fields[4] + fields[5]
	return fields[0], processTime{parent: fields[1], cpu: time.Duration(ticks) * tick}, nil
}

// descends says whether pid is root or below it.
func descends(all map[int]processTime, pid, root int) bool {
	for range len(all) {
		if pid == root {
			return true
		}
		p, ok := all[pid]
		if !ok || p.parent == 0 {
			return false
		}
		pid = p.parent
	}
	return false
}

// CheckProcess returns an error if there is no such process.
func CheckProcess(pid int) error {
	_, err := os.Stat("/proc/" + strconv.Itoa(pid))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no process %d", pid)
	}
	return err
}

// readMetrics reads the server's metrics after a while; the channel gets nil if
// they cannot be read.
func (c *Config) readMetrics(ctx context.Context, after time.Duration) <-chan *scrape.Reading {
	out := make(chan *scrape.Reading, 1)
	if c.Metrics == nil {
		out <- nil
		return out
	}
	go func() {
		_ = retry.Sleep(ctx, after) // a context that ends ends the run too
		r, err := c.Metrics.Read(ctx)
		if err != nil {
			r = nil
		}
		out <- r
	}()
	return out
}

// readServer fills in what the metrics say since an older reading.
func (c *Config) readServer(ctx context.Context, r *result.Run, before *scrape.Reading) {
	if before == nil {
		return
	}
	now, err := c.Metrics.Read(ctx)
	if err != nil {
		return // the run does not depend on it
	}
	v := scrape.Between(before, now)
	r.Server = result.Server{Commits: v.Commits * v.Seconds, Operations: v.Likes * v.Seconds}
}
