package tier1_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/auth"
	"likectl/pkg/likes"
	containers "likectl/testcontainers"
	"likectl/tiers/tiertest"
)

// These tests watch the system calls of the process that keeps the data: between
// the moment a like is sent and the moment it is acknowledged, the log is flushed
// to disk at least once.

func TestPostgresFlushesBeforeItAcknowledges(t *testing.T) {
	server := containers.StartPostgres(t)
	urls, tokens := processes(t, server.Database(t), 1)
	requireFlushes(t, server.PID(t), "/pg_wal/", urls[0], tokens)
}

func TestEmbeddedFlushesBeforeItAcknowledges(t *testing.T) {
	if testing.Short() {
		t.Skip("needs strace, which make test installs; run without -short")
	}
	data := t.TempDir()
	tokens := authority(t, data)
	server := tiertest.StartServer(t, tiertest.Build(t), nil, "--data", data)
	requireFlushes(t, server.PID(), "likes.db-wal", server.URL, tokens)
}

// requireFlushes sends likes one at a time to a traced server.
func requireFlushes(t *testing.T, pid int, log, url string, tokens minter) {
	t.Helper()
	const sent = 50
	trace := attach(t, pid)
	service := remote{client: newClient(t), url: url, token: tokens.mint(t, 1, auth.Service)}
	type request struct{ begun, ended time.Time }
	var requests []request
	for u := range likes.UserID(sent) {
		r := request{begun: time.Now()}
		result := service.Apply(t.Context(), []likes.Mutation{{Op: likes.Set, Edge: likes.Edge{
			Counter: likes.Likes, User: u + 1, Item: likes.Item{Type: 1, ID: 1},
		}}})
		r.ended = time.Now()
		require.NoError(t, result[0].Err)
		requests = append(requests, r)
	}
	flushes := trace(log)
	t.Logf("%d likes, %d flushes of the log", sent, len(flushes))
	for n, r := range requests {
		within := 0
		for _, f := range flushes {
			if f.begun.After(r.begun) && f.ended.Before(r.ended) {
				within++
			}
		}
		require.Positive(t, within, "like %d was acknowledged without a flush of the log", n)
	}
}

// flush is a completed fsync or fdatasync.
type flush struct{ begun, ended time.Time }

// attach traces a process and all of its threads and children until the returned
// function is called, which returns the flushes of files whose path contains a
// text.
func attach(t *testing.T, pid int) func(path string) []flush {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trace")
	processes := tree(t, pid)
	cmd := exec.Command("strace", "-f", "-y", "-ttt", "-T", "-e", "trace=fsync,fdatasync", "-o", file, "-p", processes)
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start(), "install the package strace")
	said := bufio.NewReader(stderr)
	for range strings.Count(processes, ",") + 1 { // a line for each once it is attached
		line, err := said.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, "attached")
	}
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			_ = cmd.Process.Signal(os.Interrupt)
			_ = cmd.Wait() // it says how it was ended
		}
	}
	t.Cleanup(stop)
	return func(path string) []flush {
		stop()
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		return flushes(t, string(text), path)
	}
}

// tree returns a process and its descendants as strace takes them.
func tree(t *testing.T, pid int) string {
	t.Helper()
	all := strconv.Itoa(pid)
	tasks, err := filepath.Glob("/proc/" + all + "/task/*/children")
	require.NoError(t, err)
	for _, f := range tasks {
		children, err := os.ReadFile(f)
		require.NoError(t, err)
		for _, child := range strings.Fields(string(children)) {
			n, err := strconv.Atoi(child)
			require.NoError(t, err)
			all += "," + tree(t, n)
		}
	}
	return all
}

// A call that another thread's line interrupted stands on two lines.
var (
	whole   = regexp.MustCompile(`^(\d+) +([\d.]+) f(?:data)?sync\(\d+<([^>]*)>\) += 0 <([\d.]+)>`)
	started = regexp.MustCompile(`^(\d+) +([\d.]+) f(?:data)?sync\(\d+<([^>]*)> <unfinished`)
	resumed = regexp.MustCompile(`^(\d+) +[\d.]+ <\.\.\. f(?:data)?sync resumed>\) += 0 <([\d.]+)>`)
)

func flushes(t *testing.T, trace, path string) []flush {
	t.Helper()
	var all []flush
	open := map[string][]string{} // by thread: the started call
	add := func(file, begun, took string) {
		if !strings.Contains(file, path) {
			return
		}
		at := seconds(t, begun)
		all = append(all, flush{begun: time.Unix(0, 0).Add(at), ended: time.Unix(0, 0).Add(at + seconds(t, took))})
	}
	for line := range strings.Lines(trace) {
		if m := whole.FindStringSubmatch(line); m != nil {
			add(m[3], m[2], m[4])
		} else if m := started.FindStringSubmatch(line); m != nil {
			open[m[1]] = m
		} else if m := resumed.FindStringSubmatch(line); m != nil && open[m[1]] != nil {
			add(open[m[1]][3], open[m[1]][2], m[2])
		}
	}
	return all
}

func seconds(t *testing.T, s string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(s + "s")
	require.NoError(t, err)
	return d
}
