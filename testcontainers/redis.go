package containers

import (
	"context"
	"net"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/testcontainers/testcontainers-go"
)

const redisImage = "redis:7"

// Redis is one real Redis server. It persists nothing unless told to.
type Redis struct{ *Container }

// StartRedis starts a server for this test alone, with further redis-server arguments ("--appendonly", "yes").
func StartRedis(tb testing.TB, args ...string) *Redis {
	tb.Helper()
	return start(tb, func(ctx context.Context) (*Redis, error) { return openRedis(ctx, args) })
}

// SharedRedis returns the package's server; tests separate themselves by key prefix.
func SharedRedis(tb testing.TB) *Redis {
	tb.Helper()
	return share(tb, func(ctx context.Context) (*Redis, error) { return openRedis(ctx, nil) })
}

func openRedis(ctx context.Context, args []string) (*Redis, error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	c, err := run(ctx, spec{
		image: redisImage, port: 6379, hostPorts: ports,
		options: []testcontainers.ContainerCustomizer{
			testcontainers.WithCmd(append([]string{"redis-server", "--protected-mode", "no", "--save", ""}, args...)...),
		},
		ready: func(ctx context.Context) error {
			return onRedis(ctx, ports[0], func(*redis.Client) error { return nil })
		},
	})
	if err != nil {
		return nil, err
	}
	return &Redis{c}, nil
}

// onRedis lends a client of one node to f once the node answers PING (it refuses while it loads its data).
func onRedis(ctx context.Context, port int, f func(*redis.Client) error) error {
	r := redis.NewClient(&redis.Options{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), MaxRetries: -1, ContextTimeoutEnabled: true})
	defer func() { _ = r.Close() }()
	if err := r.Ping(ctx).Err(); err != nil {
		return err
	}
	return f(r)
}
