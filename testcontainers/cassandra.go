package containers

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocql/gocql"
	"github.com/testcontainers/testcontainers-go"
)

const cassandraImage = "cassandra:5.0"

// Cassandra is one real Cassandra node, data centre "datacenter1". Its heap is 512 MB.
type Cassandra struct {
	*Container
	keyspaces atomic.Int64
}

// StartCassandra starts a node for this test alone.
func StartCassandra(tb testing.TB) *Cassandra {
	tb.Helper()
	return start(tb, openCassandra)
}

// SharedCassandra returns the package's node.
func SharedCassandra(tb testing.TB) *Cassandra {
	tb.Helper()
	return share(tb, openCassandra)
}

func openCassandra(ctx context.Context) (*Cassandra, error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0]))
	c, err := run(ctx, spec{
		image: cassandraImage, port: 9042, hostPorts: ports,
		options: []testcontainers.ContainerCustomizer{testcontainers.WithEnv(map[string]string{
			"CASSANDRA_BROADCAST_RPC_ADDRESS": "127.0.0.1", // what clients are told; they keep the port they were given
			"MAX_HEAP_SIZE":                   "512M",
			"HEAP_NEWSIZE":                    "128M", // the official image wants both
		})},
		ready: func(context.Context) error {
			// A connection is refused or closed until the native transport serves; then a session opens in 50 ms.
			s, err := cassandraConfig(addr).CreateSession()
			if err == nil {
				s.Close()
			}
			return err
		},
	})
	if err != nil {
		return nil, err
	}
	return &Cassandra{Container: c}, nil
}

func cassandraConfig(addr string) *gocql.ClusterConfig {
	host, port, _ := net.SplitHostPort(addr)
	config := gocql.NewCluster(host)
	config.Port, _ = strconv.Atoi(port)
	config.ConnectTimeout, config.Timeout = 2*time.Second, 10*time.Second
	config.Logger = slog.NewLogLogger(slog.DiscardHandler, 0) // it reports every refused attempt while the node starts
	return config
}

// Keyspace creates a keyspace (replication factor 1) for this test, drops it afterwards, and returns its name.
func (c *Cassandra) Keyspace(tb testing.TB) string {
	tb.Helper()
	name := fmt.Sprintf("test_%d", c.keyspaces.Add(1))
	c.exec(tb, "CREATE KEYSPACE "+name+" WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
	tb.Cleanup(func() { c.exec(tb, "DROP KEYSPACE "+name) })
	return name
}

func (c *Cassandra) exec(tb testing.TB, statement string) {
	tb.Helper()
	call(tb, statement, func(ctx context.Context) error {
		s, err := cassandraConfig(c.Addr()).CreateSession()
		if err != nil {
			return err
		}
		defer s.Close()
		return s.Query(statement).WithContext(ctx).Exec()
	})
}
