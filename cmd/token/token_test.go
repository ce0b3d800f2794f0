package token

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/cmd/cli"
	"likectl/pkg/auth"
	"likectl/pkg/config"
	"likectl/pkg/datadir"
)

// run executes the command and returns what it printed.
func run(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := NewCmd()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.Execute()
	return out.String(), err
}

func TestToken_PrintsOneThatTheServerAccepts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data") // not there yet
	_, err := run("--user", "42", "--data", dir)
	require.ErrorContains(t, err, "no secret in "+dir)
	require.ErrorContains(t, err, "--create")
	require.NoDirExists(t, dir)
	out, err := run("--user", "42", "--scope", "service", "--ttl", "1h", "--data", dir, "--create")
	require.NoError(t, err)
	token, found := strings.CutSuffix(out, "\n")
	require.True(t, found)
	require.NotContains(t, token, "\n")

	secret, err := datadir.Secret(dir)
	require.NoError(t, err)
	server, err := auth.New(auth.Default(secret))
	require.NoError(t, err)
	id, err := server.Verify(token)
	require.NoError(t, err)
	require.Equal(t, auth.Identity{User: 42, Scope: auth.Service}, id)
}

func TestToken_WhileAServerHoldsTheFolder(t *testing.T) {
	dir := t.TempDir()
	held, err := datadir.Open(dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, held.Close()) }()
	out, err := run("--user", "1", "--data", dir)
	require.NoError(t, err)
	server, err := auth.New(auth.Default(held.Secret()))
	require.NoError(t, err)
	_, err = server.Verify(strings.TrimSpace(out))
	require.NoError(t, err)
}

func TestToken_TakesIssuerAndFolderFromTheFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tier1.yaml")
	data := filepath.Join(dir, "data")
	require.NoError(t, os.WriteFile(file, []byte("data: "+data+"\nauth:\n  issuer: shop\n  audience: likes\n"), 0o600))
	out, err := run("--user", "1", "-c", file, "--create")
	require.NoError(t, err)
	secret, err := datadir.Secret(data)
	require.NoError(t, err)
	cfg := auth.Default(secret)
	cfg.Issuer, cfg.Audience = "shop", "likes"
	server, err := auth.New(cfg)
	require.NoError(t, err)
	_, err = server.Verify(strings.TrimSpace(out))
	require.NoError(t, err)
}

func TestToken_BadValuesAreUsageErrorsThatNameTheFlag(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	for _, c := range []struct {
		flag string
		args []string
	}{
		{"--user", nil},
		{"--user", []string{"--user", ""}},
		{"--user", []string{"--user", "0"}},
		{"--user", []string{"--user", "01"}},
		{"--user", []string{"--user", "-1"}},
		{"--user", []string{"--user", "bob"}},
		{"--user", []string{"--user", "9223372036854775808"}},
		{"--scope", []string{"--user", "1", "--scope", "root"}},
		{"--scope", []string{"--user", "1", "--scope", ""}},
		{"--ttl", []string{"--user", "1", "--ttl", "0s"}},
		{"--ttl", []string{"--user", "1", "--ttl", "-1h"}},
		{"--ttl", []string{"--user", "1", "--ttl", "999999h"}},
	} {
		_, err := run(append(c.args, "--data", dir)...)
		require.Equal(t, cli.Usage, cli.CodeOf(err), "%v: %v", c.args, err)
		require.ErrorContains(t, err, c.flag, "%v", c.args)
	}
	_, err := os.Stat(dir)
	require.ErrorIs(t, err, os.ErrNotExist, "a refused call has created nothing")
}

// The examples of the help text are parsed as a shell would.
func TestToken_ExamplesParse(t *testing.T) {
	var got []Options
	for line := range strings.Lines(NewCmd().Example) {
		_, args, ok := strings.Cut(line, "likectl token ")
		if !ok {
			continue
		}
		args, _, _ = strings.Cut(args, ")")
		cmd := newCmd(func(_ io.Writer, o Options) error {
			got = append(got, o)
			return nil
		})
		cmd.SetArgs(strings.Fields(args))
		require.NoError(t, cmd.Execute(), line)
	}
	d := config.Default()
	require.Equal(t, []Options{
		{User: 42, Scope: auth.User, TTL: 24 * time.Hour, Data: d.Data, Auth: d.Auth},
		{User: 1, Scope: auth.Service, TTL: 720 * time.Hour, Data: d.Data, Auth: d.Auth},
		{User: 42, Scope: auth.User, TTL: 24 * time.Hour, Data: d.Data, Auth: d.Auth},
	}, got)
}
