package containers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
)

const (
	// label marks every container of these tests with the pid that started it, so that images/clean.sh finds leftovers.
	label = "likectl.test"
	// startPatience bounds one start, the slowest being Cassandra: 4 to 6 s on an idle machine, 35 s on a busy one.
	startPatience = 2 * time.Minute
	// callPatience bounds one fault or clean-up call; they take 10 to 300 ms.
	callPatience = 30 * time.Second
	pollInterval = 25 * time.Millisecond
)

// Container is one running server and the faults that can be done to it.
// Its methods end the test on error, so call them from the test's own goroutine.
type Container struct {
	addr   string
	shared bool
	tc     testcontainers.Container
	docker *testcontainers.DockerClient
	ready  func(context.Context) error
}

// spec says what to run. The server listens on the same ports inside as outside when hostPorts is nil.
type spec struct {
	image     string
	port      int   // the server's port inside the container, published on hostPorts[0]
	hostPorts []int // further ones are published under the same number
	options   []testcontainers.ContainerCustomizer
	ready     func(context.Context) error // nil when the server answers; tried until it does
}

// run starts the container and waits until the server answers. On error nothing is left behind.
func run(ctx context.Context, s spec) (*Container, error) {
	if err := settleEnvironment(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	docker, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return nil, fmt.Errorf("reach docker (testcontainers/images/setup.sh starts it): %w", err)
	}
	bindings := network.PortMap{}
	for i, hostPort := range s.hostPorts {
		inside := hostPort
		if i == 0 && s.port != 0 {
			inside = s.port
		}
		bindings[network.MustParsePort(fmt.Sprintf("%d/tcp", inside))] = []network.PortBinding{{
			HostIP: netip.AddrFrom4([4]byte{127, 0, 0, 1}), HostPort: strconv.Itoa(hostPort),
		}}
	}
	exposed := make([]string, 0, len(bindings))
	for p := range bindings {
		exposed = append(exposed, p.String())
	}
	options := append([]testcontainers.ContainerCustomizer{
		testcontainers.WithExposedPorts(exposed...),
		testcontainers.WithHostConfigModifier(func(h *container.HostConfig) { h.PortBindings = bindings }),
		testcontainers.WithLabels(map[string]string{label: strconv.Itoa(os.Getpid())}),
	}, s.options...)
	tc, err := testcontainers.Run(ctx, s.image, options...)
	c := &Container{addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.hostPorts[0])), tc: tc, docker: docker, ready: s.ready}
	if err == nil {
		live.add(c)
		err = c.waitReady(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s (testcontainers/images/setup.sh makes the images): %w", s.image, err), c.remove())
	}
	return c, nil
}

// settleEnvironment sets what testcontainers reads from the environment, where the caller has not set it:
// no reaper container (its image may be out of reach; Main and clean.sh do its work), and loopback as the address of
// published ports (inside a container or VM it would guess the default gateway and hang).
func settleEnvironment() error {
	log.SetDefault(log.NewNoopLogger()) // it tells of every step; errors come back as values
	for name, value := range map[string]string{
		"TESTCONTAINERS_RYUK_DISABLED": "true",
		"TESTCONTAINERS_HOST_OVERRIDE": "127.0.0.1",
		"DOCKER_HOST":                  "unix:///var/run/docker.sock",
	} {
		if os.Getenv(name) == "" {
			if err := os.Setenv(name, value); err != nil {
				return fmt.Errorf("set %s: %w", name, err)
			}
		}
	}
	return nil
}

// freePorts returns n consecutive loopback ports that nothing listens on. They lie below the range from which the kernel
// picks client ports (32768 up), or another connection could take a killed server's port before it starts again.
func freePorts(n int) ([]int, error) {
	const lowest, highest = 20000, 32000
	for range 100 {
		base := lowest + rand.IntN(highest-lowest-n)
		ports := make([]int, 0, n)
		for p := base; p < base+n; p++ {
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p)))
			if err != nil {
				break
			}
			_ = l.Close()
			ports = append(ports, p)
		}
		if len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("find %d free consecutive ports between %d and %d", n, lowest, highest)
}

// poll calls try until it returns nil; when ctx ends first, the error tells what try said last.
func poll(ctx context.Context, try func(context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-ticker.C:
		}
	}
}

// waitReady polls the server, and gives up at once when its process has ended.
func (c *Container) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := poll(ctx, func(ctx context.Context) error {
		attempt, done := context.WithTimeout(ctx, 5*time.Second)
		defer done()
		err := c.ready(attempt)
		if err == nil {
			return nil
		}
		if state, stateErr := c.state(ctx); stateErr == nil && !state.Running {
			cancel(fmt.Errorf("the server ended with code %d", state.ExitCode))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("wait until the server answers: %w (%w)\nits last output:\n%s", err, context.Cause(ctx), c.tail())
	}
	return nil
}

func (c *Container) state(ctx context.Context) (*container.State, error) {
	r, err := c.docker.ContainerInspect(ctx, c.tc.GetContainerID(), client.ContainerInspectOptions{})
	if err != nil {
		return nil, fmt.Errorf("inspect container: %w", err)
	}
	return r.Container.State, nil
}

// tail returns the last 2 kB of the server's output.
func (c *Container) tail() string {
	ctx, cancel := context.WithTimeout(context.Background(), callPatience)
	defer cancel()
	r, err := c.tc.Logs(ctx)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = r.Close() }()
	out, _ := io.ReadAll(r)
	return string(out[max(0, len(out)-2048):])
}

// remove kills and deletes the container with its volumes. It is safe on one that never came up.
func (c *Container) remove() error {
	ctx, cancel := context.WithTimeout(context.Background(), callPatience)
	defer cancel()
	live.drop(c)
	var err error
	if c.tc != nil && c.tc.GetContainerID() != "" {
		if err = c.tc.Terminate(ctx, testcontainers.StopTimeout(0)); err != nil {
			err = fmt.Errorf("remove container: %w", err)
		}
	}
	return errors.Join(err, c.docker.Close())
}

// PID returns the process id of the server's first process as this machine sees it, for tracing it (needs root).
func (c *Container) PID(tb testing.TB) int {
	tb.Helper()
	var pid int
	call(tb, "inspect the server", func(ctx context.Context) error {
		state, err := c.state(ctx)
		if err == nil {
			pid = state.Pid
		}
		return err
	})
	return pid
}

// iptables runs a rule in the container's own network namespace; the machine's firewall is not touched.
func (c *Container) iptables(ctx context.Context, rule ...string) error {
	state, err := c.state(ctx)
	if err != nil {
		return err
	}
	args := append([]string{"-t", strconv.Itoa(state.Pid), "-n", "iptables", "-w"}, rule...)
	if out, err := exec.CommandContext(ctx, "nsenter", args...).CombinedOutput(); err != nil { //nolint:gosec // test code, arguments are ours
		return fmt.Errorf("iptables %v in the container's network namespace (needs root): %w: %s", rule, err, out)
	}
	return nil
}

// call runs one step against the container and ends the test when it fails.
func call(tb testing.TB, what string, step func(context.Context) error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), callPatience)
	defer cancel()
	require.NoError(tb, step(ctx), what)
}
