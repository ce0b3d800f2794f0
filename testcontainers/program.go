package containers

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/testcontainers/testcontainers-go/exec"
)

// OpenPostgres is [StartPostgres] for a program that is no test: whoever opens the server closes it.
func OpenPostgres(ctx context.Context, settings ...string) (*Postgres, error) {
	return openPostgres(ctx, settings)
}

// OpenRedis is [StartRedis] for a program that is no test: whoever opens the server closes it.
func OpenRedis(ctx context.Context, args ...string) (*Redis, error) { return openRedis(ctx, args) }

// Close kills the server and removes all that it stored.
func (c *Container) Close() error { return c.remove() }

// ProcessID is [Container.PID] for programs.
func (c *Container) ProcessID(ctx context.Context) (int, error) {
	state, err := c.state(ctx)
	if err != nil {
		return 0, err
	}
	return state.Pid, nil
}

// IP returns the server's address on Docker's own network: packets to it do not pass the proxy that published ports pass.
func (c *Container) IP(ctx context.Context) (string, error) { return c.tc.ContainerIP(ctx) }

// Exec runs a command inside the container and returns what it printed to its standard output and error. A command that
// ends with another code than 0 is an error.
func (c *Container) Exec(ctx context.Context, command ...string) (string, error) {
	code, out, err := c.tc.Exec(ctx, command, exec.Multiplexed())
	if err != nil {
		return "", fmt.Errorf("run %s in the container: %w", command[0], err)
	}
	text, err := io.ReadAll(out)
	if err == nil && code != 0 {
		err = fmt.Errorf("%s in the container ended with code %d: %s", command[0], code, strings.TrimSpace(string(text)))
	}
	return string(text), err
}

// Copy writes a file into the container, readable for everybody.
func (c *Container) Copy(ctx context.Context, path string, content []byte) error {
	return c.tc.CopyToContainer(ctx, content, path, 0o644)
}
