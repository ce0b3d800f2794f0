package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/cmd/cli"
)

// TestInterruptedWhileItOpensWhatItWorksOn: whatever a command waits for at its
// beginning, a signal is no failure of it.
func TestInterruptedWhileItOpensWhatItWorksOn(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, silent.Close()) }()
	data := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(data, "users"), []byte("1\n"), 0o600))
	for _, args := range [][]string{
		{"erase", "--user", "1"}, {"purge", "--users", filepath.Join(data, "users")}, {"export"}, {"schema", "status"},
	} {
		cmd := exec.CommandContext(t.Context(), "likectl", append(args, "--dsn", "postgres://likectl@"+silent.Addr().String()+"/x")...)
		cmd.Dir = data
		require.NoError(t, cmd.Start(), "%v", args)
		conn, err := silent.Accept() // it waits for what will never come
		require.NoError(t, err)
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		failed := new(exec.ExitError)
		require.ErrorAs(t, cmd.Wait(), &failed, "%v", args)
		require.Equal(t, cli.Interrupted, failed.ExitCode(), "%v", args)
		require.NoError(t, conn.Close())
	}
}
