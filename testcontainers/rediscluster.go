package containers

import (
	"context"
	_ "embed" // the script that runs the nodes
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/exec"
)

//go:embed rediscluster.sh
var redisClusterScript string

const (
	redisClusterNodes = 6
	// redisBusOffset is Redis' own: a node's cluster bus listens on its port plus this.
	redisBusOffset  = 10000
	redisScriptPath = "/usr/local/bin/rediscluster.sh"
)

// RedisCluster is a real Redis Cluster of three masters with a replica each. The six processes share one container, hence
// one network namespace, so that the addresses they announce (127.0.0.1:port) hold for clients outside as well.
// A dead node's port still accepts and then closes at once (Docker's port forwarder does that), where a dead process on the
// machine itself would refuse. Nodes count as failed after 1 s.
type RedisCluster struct {
	*Container
	ports []int
}

// StartRedisCluster starts a cluster for this test alone; args are further redis-server arguments of every node, by
// default an append-only file (a master that comes back empty would empty its replica).
func StartRedisCluster(tb testing.TB, args ...string) *RedisCluster {
	tb.Helper()
	return start(tb, func(ctx context.Context) (*RedisCluster, error) { return openRedisCluster(ctx, args) })
}

// SharedRedisCluster returns the package's cluster; tests separate themselves by key prefix.
func SharedRedisCluster(tb testing.TB) *RedisCluster {
	tb.Helper()
	return share(tb, func(ctx context.Context) (*RedisCluster, error) { return openRedisCluster(ctx, nil) })
}

func openRedisCluster(ctx context.Context, args []string) (*RedisCluster, error) {
	ports, err := freePorts(redisClusterNodes)
	if err != nil {
		return nil, err
	}
	if len(args) == 0 {
		args = []string{"--appendonly", "yes"}
	}
	c := &RedisCluster{ports: ports}
	command := []string{redisScriptPath, "run"}
	for _, p := range ports {
		command = append(command, strconv.Itoa(p))
	}
	formed := false
	c.Container, err = run(ctx, spec{
		image: redisImage, hostPorts: ports,
		options: []testcontainers.ContainerCustomizer{
			testcontainers.WithFiles(testcontainers.ContainerFile{
				Reader: strings.NewReader(redisClusterScript), ContainerFilePath: redisScriptPath, FileMode: 0o755,
			}),
			testcontainers.WithEntrypoint(append(append(command, "--"), args...)...),
		},
		ready: func(ctx context.Context) error {
			for _, p := range ports {
				if err := onRedis(ctx, p, func(r *redis.Client) error {
					if formed {
						return redisNodeReady(ctx, r)
					}
					return nil
				}); err != nil {
					return fmt.Errorf("node %d: %w", p, err)
				}
			}
			return nil
		},
	})
	if err != nil {
		return nil, err
	}
	if err := c.form(ctx); err != nil {
		return nil, errors.Join(err, c.remove())
	}
	formed = true
	if err := c.waitReady(ctx); err != nil {
		return nil, errors.Join(err, c.remove())
	}
	return c, nil
}

// form joins the nodes. It returns before the replicas are in sync: redisNodeReady waits for that.
func (c *RedisCluster) form(ctx context.Context) error {
	return c.exec(ctx, append(append([]string{"redis-cli", "--cluster", "create"}, c.Addrs()...), "--cluster-replicas", "1", "--cluster-yes")...)
}

// redisNodeReady reports whether the node serves: the cluster is whole in its view and its replication link is up.
func redisNodeReady(ctx context.Context, r *redis.Client) error {
	info, err := r.ClusterInfo(ctx).Result()
	if err != nil {
		return err
	}
	if !strings.Contains(info, "cluster_state:ok") {
		return errors.New("cluster_state is not ok")
	}
	info, err = r.Info(ctx, "replication").Result()
	if err != nil {
		return err
	}
	if !strings.Contains(info, "master_link_status:up") && !strings.Contains(info, "state=online") {
		return errors.New("the replica is not in sync")
	}
	return nil
}

// exec runs a command inside the container.
func (c *RedisCluster) exec(ctx context.Context, command ...string) error {
	code, out, err := c.tc.Exec(ctx, command, exec.Multiplexed())
	if err != nil {
		return fmt.Errorf("%s: %w", command[0], err)
	}
	if text, _ := io.ReadAll(out); code != 0 {
		return fmt.Errorf("%v ended with code %d: %s", command, code, text)
	}
	return nil
}

// Addrs returns the addresses of all six nodes.
func (c *RedisCluster) Addrs() []string {
	addrs := make([]string, 0, len(c.ports))
	for _, p := range c.ports {
		addrs = append(addrs, net.JoinHostPort("127.0.0.1", strconv.Itoa(p)))
	}
	return addrs
}

// MasterOf returns the address of the master that serves the key now.
func (c *RedisCluster) MasterOf(tb testing.TB, key string) string {
	tb.Helper()
	r := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	defer func() { _ = r.Close() }()
	node, err := r.MasterForKey(tb.Context(), key)
	require.NoError(tb, err)
	return node.Options().Addr
}

// KillNode ends one node with SIGKILL.
func (c *RedisCluster) KillNode(tb testing.TB, addr string) {
	tb.Helper()
	c.signal(tb, addr, "KILL")
}

// StartNode starts a killed node again and returns when it has joined and is in sync.
func (c *RedisCluster) StartNode(tb testing.TB, addr string) {
	tb.Helper()
	port := c.port(tb, addr)
	call(tb, "start redis node", func(ctx context.Context) error {
		if err := c.exec(ctx, redisScriptPath, "node", strconv.Itoa(port)); err != nil {
			return err
		}
		return poll(ctx, func(ctx context.Context) error {
			return onRedis(ctx, port, func(r *redis.Client) error { return redisNodeReady(ctx, r) })
		})
	})
}

// PauseNode freezes one node (SIGSTOP): its connections stay open and get no answer.
func (c *RedisCluster) PauseNode(tb testing.TB, addr string) {
	tb.Helper()
	c.signal(tb, addr, "STOP")
}

// UnpauseNode lets a paused node run on.
func (c *RedisCluster) UnpauseNode(tb testing.TB, addr string) {
	tb.Helper()
	c.signal(tb, addr, "CONT")
}

// CutNode drops every packet between the node and anybody else.
func (c *RedisCluster) CutNode(tb testing.TB, addr string) {
	tb.Helper()
	c.cut(tb, addr, nil, nil)
}

// CutPeers drops every packet between the node and the other nodes, while clients still reach it: the partition in which a
// master goes on acknowledging writes that its promoted replica never saw.
func (c *RedisCluster) CutPeers(tb testing.TB, addr string) {
	tb.Helper()
	c.cut(tb, addr, []string{"-i", "lo"}, []string{"-o", "lo"})
}

// cut drops packets to and from the node's two ports, and what the node itself sends from its own source address.
// Heal ends it.
func (c *RedisCluster) cut(tb testing.TB, addr string, in, out []string) {
	tb.Helper()
	port := c.port(tb, addr)
	tb.Cleanup(func() { c.restore(tb) })
	own := []string{"-p", "tcp", "-m", "multiport", "--ports", fmt.Sprintf("%d,%d", port, port+redisBusOffset), "-j", "DROP"}
	source := "127.0.1." + strconv.Itoa(port-c.ports[0]+1)
	call(tb, "cut redis node off", func(ctx context.Context) error {
		return errors.Join(
			c.iptables(ctx, append(append([]string{"-A", "INPUT"}, in...), own...)...),
			c.iptables(ctx, append(append([]string{"-A", "OUTPUT"}, out...), own...)...),
			c.iptables(ctx, "-A", "OUTPUT", "-s", source, "-j", "DROP"),
		)
	})
}

func (c *RedisCluster) signal(tb testing.TB, addr, name string) {
	tb.Helper()
	port := strconv.Itoa(c.port(tb, addr))
	call(tb, "signal redis node", func(ctx context.Context) error { return c.exec(ctx, redisScriptPath, "signal", name, port) })
}

func (c *RedisCluster) port(tb testing.TB, addr string) int {
	tb.Helper()
	for i, a := range c.Addrs() {
		if a == addr {
			return c.ports[i]
		}
	}
	require.FailNow(tb, "no such node", addr)
	return 0
}
