package datadir_test

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/datadir"
)

// asChild, in the environment, makes the test binary act as another process.
const asChild = "LIKECTL_TEST_DATADIR_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(asChild) {
	case "hold":
		os.Exit(hold(os.Args[1]))
	case "secret":
		os.Exit(printSecret(os.Args[1]))
	}
	os.Exit(m.Run())
}

// hold opens the folder, says so, and keeps it until killed or told to end.
func hold(path string) int {
	d, err := datadir.Open(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("locked")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	if d.Close() != nil {
		return 1
	}
	return 0
}

// printSecret waits for a line, so that several start together.
func printSecret(path string) int {
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	secret, err := datadir.Secret(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(hex.EncodeToString(secret))
	return 0
}

type process struct {
	*exec.Cmd
	out *bufio.Reader
	in  interface{ Write([]byte) (int, error) }
}

func start(t *testing.T, role, path string) *process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, path)
	cmd.Env = append(os.Environ(), asChild+"="+role)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return &process{Cmd: cmd, out: bufio.NewReader(out), in: in}
}

func (p *process) line(t *testing.T) string {
	t.Helper()
	line, err := p.out.ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
}

func (p *process) tell(t *testing.T) {
	t.Helper()
	_, err := p.in.Write([]byte("\n"))
	require.NoError(t, err)
}

func TestOpenCreatesFolderAndSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "data")
	d, err := datadir.Open(path)
	require.NoError(t, err)
	require.Equal(t, path, d.Path())
	require.Equal(t, filepath.Join(path, "likes.db"), d.Database())
	require.Len(t, d.Secret(), datadir.SecretSize)
	require.NotEqual(t, make([]byte, datadir.SecretSize), d.Secret())

	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	info, err = os.Stat(filepath.Join(path, "secret"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	entries, err := os.ReadDir(path)
	require.NoError(t, err)
	require.Len(t, entries, 2, "only lock and secret stay")

	same, err := datadir.Secret(path)
	require.NoError(t, err)
	require.Equal(t, d.Secret(), same)
	require.NoError(t, d.Close())

	again, err := datadir.Open(path)
	require.NoError(t, err)
	require.Equal(t, same, again.Secret(), "a restart keeps the secret")
	require.NoError(t, again.Close())
}

func TestRelativePathStaysWhereItWas(t *testing.T) {
	t.Chdir(t.TempDir())
	d, err := datadir.Open(datadir.Default)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	require.True(t, filepath.IsAbs(d.Database()))
}

func TestSecondOpenInOneProcessIsRefused(t *testing.T) {
	path := t.TempDir()
	d, err := datadir.Open(path)
	require.NoError(t, err)
	_, err = datadir.Open(path)
	var locked *datadir.LockedError
	require.ErrorAs(t, err, &locked)
	require.Equal(t, os.Getpid(), locked.PID)
	require.NoError(t, d.Close())
}

func TestLockNamesItsHolderAndEndsWithIt(t *testing.T) {
	path := t.TempDir()
	holder := start(t, "hold", path)
	require.Equal(t, "locked", holder.line(t))

	_, err := datadir.Open(path)
	var locked *datadir.LockedError
	require.ErrorAs(t, err, &locked)
	require.Equal(t, holder.Process.Pid, locked.PID)
	require.ErrorContains(t, err, fmt.Sprintf("process %d", holder.Process.Pid))
	require.ErrorContains(t, err, "--admin URL")
	_, err = datadir.Secret(path)
	require.NoError(t, err, "tokens are made while a server runs")

	require.NoError(t, holder.Process.Kill())
	require.Error(t, holder.Wait())
	d, err := datadir.Open(path)
	require.NoError(t, err, "kill -9 leaves no lock behind")
	require.NoError(t, d.Close())
}

func TestRacingProcessesGetOneSecret(t *testing.T) {
	const processes, rounds = 4, 5
	for range rounds {
		path := filepath.Join(t.TempDir(), "data")
		all := make([]*process, processes)
		for i := range all {
			all[i] = start(t, "secret", path)
			require.Equal(t, "ready", all[i].line(t))
		}
		for _, p := range all {
			p.tell(t)
		}
		want := ""
		for _, p := range all {
			got := p.line(t)
			require.NoError(t, p.Wait())
			if want == "" {
				want = got
			}
			require.Equal(t, want, got)
		}
		stored, err := datadir.Secret(path)
		require.NoError(t, err)
		require.Equal(t, want, hex.EncodeToString(stored))
	}
}

func TestBadSecretsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		size int
		mode fs.FileMode
		says string
	}{
		"group can read": {datadir.SecretSize, 0o640, "mode is 0640"},
		"world can read": {datadir.SecretSize, 0o604, "mode is 0604"},
		"empty":          {0, 0o600, "32 bytes but 0"},
		"short":          {datadir.SecretSize - 1, 0o600, "32 bytes but 31"},
		"long":           {datadir.SecretSize + 1, 0o600, "32 bytes but 33"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "secret")
			require.NoError(t, os.WriteFile(path, make([]byte, c.size), 0o600))
			require.NoError(t, os.Chmod(path, c.mode))
			_, err := datadir.Secret(dir)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, path)
			_, err = datadir.Open(dir)
			require.ErrorContains(t, err, c.says)
			require.NotErrorAs(t, err, new(*datadir.LockedError), "a failed open holds no lock")
			left, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Len(t, left, c.size, "a bad secret is never replaced")
		})
	}
}

func TestASecretThatIsAPipeIsRefusedAndNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "secret"), 0o600))
	_, err := datadir.Secret(dir)
	require.ErrorContains(t, err, "not a regular file")
}

func TestPathsThatAreNoFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := datadir.Open(file)
	require.ErrorContains(t, err, "--data DIR")
	_, err = datadir.Open("")
	require.ErrorContains(t, err, "--data DIR")
}
