package containers

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"
)

// Addr is where clients reach the server, "127.0.0.1:port". It stays the same over Kill and Start.
func (c *Container) Addr() string { return c.addr }

// Kill ends all processes of the server with SIGKILL and returns when they are gone. Its data stays.
func (c *Container) Kill(tb testing.TB) {
	tb.Helper()
	if c.shared {
		tb.Cleanup(func() { c.restore(tb) })
	}
	call(tb, "kill the server", func(ctx context.Context) error {
		if _, err := c.docker.ContainerKill(ctx, c.tc.GetContainerID(), client.ContainerKillOptions{Signal: "KILL"}); err != nil {
			return fmt.Errorf("kill container: %w", err)
		}
		return poll(ctx, func(ctx context.Context) error {
			state, err := c.state(ctx)
			if err == nil && state.Running {
				err = errors.New("still running")
			}
			return err
		})
	})
}

// Start starts a killed server again and returns when it answers.
func (c *Container) Start(tb testing.TB) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startPatience)
	defer cancel()
	_, err := c.docker.ContainerStart(ctx, c.tc.GetContainerID(), client.ContainerStartOptions{})
	require.NoError(tb, err, "start the server again")
	require.NoError(tb, c.waitReady(ctx))
}

// Pause freezes all processes of the server: connections stay open and get no answer.
func (c *Container) Pause(tb testing.TB) {
	tb.Helper()
	tb.Cleanup(func() { c.restore(tb) })
	call(tb, "pause the server", func(ctx context.Context) error {
		_, err := c.docker.ContainerPause(ctx, c.tc.GetContainerID(), client.ContainerPauseOptions{})
		return err
	})
}

// Unpause lets a paused server run on.
func (c *Container) Unpause(tb testing.TB) {
	tb.Helper()
	call(tb, "unpause the server", func(ctx context.Context) error {
		_, err := c.docker.ContainerUnpause(ctx, c.tc.GetContainerID(), client.ContainerUnpauseOptions{})
		return err
	})
}

// Cut drops every packet to and from the server silently, as a dead network does: no reset, no refusal.
func (c *Container) Cut(tb testing.TB) {
	tb.Helper()
	tb.Cleanup(func() { c.restore(tb) })
	call(tb, "cut the server off", func(ctx context.Context) error {
		return errors.Join(
			c.iptables(ctx, "-A", "INPUT", "-i", "eth0", "-j", "DROP"),
			c.iptables(ctx, "-A", "OUTPUT", "-o", "eth0", "-j", "DROP"),
		)
	})
}

// Heal ends every cut of this container.
func (c *Container) Heal(tb testing.TB) {
	tb.Helper()
	call(tb, "heal the network", c.heal)
}

// heal flushes the namespace's own filter rules: all of them are ours, and a second heal is harmless.
func (c *Container) heal(ctx context.Context) error {
	return errors.Join(c.iptables(ctx, "-F", "INPUT"), c.iptables(ctx, "-F", "OUTPUT"))
}

// restore undoes what a test left broken, so that the next test on a shared server starts from a working one.
func (c *Container) restore(tb testing.TB) {
	tb.Helper()
	var running, paused bool
	call(tb, "inspect the server", func(ctx context.Context) error {
		state, err := c.state(ctx)
		if err == nil {
			running, paused = state.Running, state.Paused
		}
		return err
	})
	switch {
	case paused:
		c.Unpause(tb)
		c.Heal(tb)
	case running:
		c.Heal(tb)
	case c.shared:
		c.Start(tb)
	}
}
