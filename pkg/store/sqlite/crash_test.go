package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/store/sqlite"
)

// asChild, in the environment, makes the test binary act as another process.
const asChild = "LIKECTL_TEST_SQLITE_CHILD"

// runChild ends the process if it is a child.
func runChild() {
	roles := map[string]func(args []string) error{"commit": childCommit, "rlimit": childLimit, "tmpfs": childTmpfs}
	role, ok := roles[os.Getenv(asChild)]
	if !ok {
		return
	}
	if err := role(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func child(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), asChild+"="+role)
	cmd.Stderr = os.Stderr
	return cmd
}

// nthBatch is the batch that every process makes of a number.
func nthBatch(n int) []store.Write {
	r := rand.New(rand.NewPCG(uint64(n), 7))
	ws := make([]store.Write, 0, 60)
	for range cap(ws) {
		w := like(likes.UserID(1+r.Int64N(20)), likes.ItemID(1+r.Int64N(15)))
		w.Liked = r.IntN(3) > 0
		w.Clock = likes.ClockAt(start.Add(time.Duration(n)*time.Microsecond), 1)
		ws = append(ws, w)
	}
	return unique(ws)
}

// childCommit commits the batches from a number on and prints each one that was
// acknowledged; with a third argument it ends after so many.
func childCommit(args []string) error {
	first, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	last := int(^uint(0) >> 1)
	if len(args) > 2 {
		n, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		last = first + n - 1
	}
	s, err := sqlite.Open(context.Background(), args[0])
	if err != nil {
		return err
	}
	for n := first; n <= last; n++ {
		ws := nthBatch(n)
		if err := s.Commit(context.Background(), store.Commit{Writes: ws}, make([]store.Written, len(ws))); err != nil {
			return err
		}
		if _, err := os.Stdout.WriteString("ack " + strconv.Itoa(n) + "\n"); err != nil {
			return err
		}
	}
	return s.Close()
}

// state is the model: the registers that all batches so far leave behind.
type state map[likes.Edge]likes.Register

func (m state) after(n int) state {
	next := maps.Clone(m)
	for _, w := range nthBatch(n) {
		next[w.Edge], _ = next[w.Edge].Issue(w.Liked, w.Clock, w.LikedAt)
	}
	return next
}

// stored reads all registers of the batches' edges.
func stored(t *testing.T, s *sqlite.Store) state {
	t.Helper()
	all := make(state)
	items := make([]likes.Item, 15)
	for i := range items {
		items[i] = likes.Item{Type: 1, ID: likes.ItemID(i + 1)}
	}
	out := make([]likes.Register, len(items))
	for user := likes.UserID(1); user <= 20; user++ {
		require.NoError(t, s.Registers(t.Context(), likes.Likes, user, items, out))
		for i, r := range out {
			if r.Clock != 0 {
				all[likes.Edge{Counter: likes.Likes, Item: items[i], User: user}] = r
			}
		}
	}
	return all
}

// TestKilledProcessLosesNothing kills a committing process at random moments.
// What it acknowledged is there, the batch in flight is there whole or not at
// all, and every counter equals its edges.
func TestKilledProcessLosesNothing(t *testing.T) {
	const kills = 25
	path := t.TempDir() + "/likes.db"
	want, next, landed := make(state), 0, 0
	for range kills {
		cmd := child(t, "commit", path, strconv.Itoa(next))
		pipe, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		out := bufio.NewScanner(pipe)
		ack := func() bool {
			if !out.Scan() {
				return false
			}
			require.Equal(t, "ack "+strconv.Itoa(next), out.Text())
			want = want.after(next)
			next++
			return true
		}
		require.True(t, ack(), "the child commits")
		timer := time.AfterFunc(rand.N(60*time.Millisecond), func() { _ = cmd.Process.Kill() })
		for ack() {
		}
		timer.Stop()
		require.Error(t, cmd.Wait())

		if requireState(t, path, want, want.after(next)) {
			want, next = want.after(next), next+1
			landed++
		}
	}
	t.Logf("%d kills in %d batches; %d times the batch in flight had landed", kills, next, landed)
}

// requireState wants the file to hold the acknowledged state or the one with the
// batch in flight, and exact counters. It returns whether that batch is there.
func requireState(t *testing.T, path string, acknowledged, inFlight state) bool {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path)
	require.NoError(t, err)
	got := stored(t, s)
	landed := maps.Equal(got, inFlight)
	if !landed {
		require.Equal(t, acknowledged, got)
	}
	requireExact(t, s)
	require.NoError(t, s.Close())
	return landed
}

// traced is a child under strace, which writes what it sees to a file.
func traced(t *testing.T, trace string, options []string, args ...string) *exec.Cmd {
	t.Helper()
	if testing.Short() {
		t.Skip("needs strace, which make test installs; run without -short")
	}
	strace, err := exec.LookPath("strace")
	require.NoError(t, err, "install the package strace")
	cmd := child(t, "commit", args...)
	cmd.Args[0] = cmd.Path
	cmd.Path = strace
	cmd.Args = slices.Concat([]string{strace, "-f", "-y", "-qq", "-o", trace}, options, cmd.Args)
	return cmd
}

// TestEveryCommitIsSynced watches the system calls: between two acknowledged
// batches there is a completed flush of the WAL.
func TestEveryCommitIsSynced(t *testing.T) {
	const batches = 30
	dir := t.TempDir()
	cmd := traced(t, dir+"/trace", []string{"-e", "trace=fsync,fdatasync,write"}, dir+"/likes.db", "0", strconv.Itoa(batches))
	require.NoError(t, cmd.Run())
	trace, err := os.ReadFile(dir + "/trace")
	require.NoError(t, err)
	synced, acks := 0, 0
	for line := range strings.Lines(string(trace)) {
		switch {
		case strings.Contains(line, "sync resumed>") && strings.Contains(line, "= 0"),
			strings.Contains(line, "sync(") && strings.Contains(line, "likes.db-wal>)") && strings.Contains(line, "= 0"):
			synced++
		case strings.Contains(line, `"ack `):
			require.Positive(t, synced, "acknowledged without a flush: %s", line)
			acks++
			synced = 0
		}
	}
	require.Equal(t, batches, acks)
}

// TestFailedFlushIsUncertain makes a flush of the WAL fail once. The batch's
// frames are in the file then, so nobody may say that it was not applied.
func TestFailedFlushIsUncertain(t *testing.T) {
	dir := t.TempDir()
	path := dir + "/likes.db"
	require.NoError(t, open(t, path).Close())
	inject := []string{"-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:error=EIO:when=8+", "-P", path + "-wal"}
	cmd := traced(t, dir+"/trace", inject, path, "0", "1000")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.Error(t, err)
	require.Contains(t, stderr.String(), "may have been applied, repeating it is safe")
	acks := strings.Count(string(out), "ack ")
	require.Positive(t, acks)
	want := make(state)
	for n := range acks {
		want = want.after(n)
	}
	requireState(t, path, want, want.after(acks))
}
