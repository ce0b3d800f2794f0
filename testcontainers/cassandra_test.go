package containers_test

import (
	"log/slog"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/gocql/gocql"
	"github.com/stretchr/testify/require"

	containers "likectl/testcontainers"
)

func cassandraSession(t *testing.T, addr, keyspace string) *gocql.Session {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	config := gocql.NewCluster(host)
	config.Port, err = strconv.Atoi(port)
	require.NoError(t, err)
	config.Keyspace, config.Timeout, config.ConnectTimeout = keyspace, 10*time.Second, 5*time.Second
	config.Logger = slog.NewLogLogger(slog.DiscardHandler, 0) // it tells of every lost connection, and the test means to lose them
	s, err := config.CreateSession()
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func TestCassandra_PauseKillAndComeBack(t *testing.T) {
	c := containers.SharedCassandra(t)
	keyspace := c.Keyspace(t)
	s := cassandraSession(t, c.Addr(), keyspace)
	require.NoError(t, s.Query("CREATE TABLE notes (a int PRIMARY KEY, b text)").Exec())
	require.NoError(t, s.Query("INSERT INTO notes (a, b) VALUES (1, 'x')").Exec())
	read := func(s *gocql.Session, patience time.Duration) (b string, err error) {
		err = s.Query("SELECT b FROM notes WHERE a = 1").WithContext(within(t, patience)).Scan(&b)
		return b, err
	}
	b, err := read(s, 10*time.Second)
	require.NoError(t, err)
	require.Equal(t, "x", b)

	c.Pause(t)
	_, err = read(s, 300*time.Millisecond)
	require.Error(t, err, "a paused node must not answer")
	c.Unpause(t)
	_, err = read(s, 10*time.Second)
	require.NoError(t, err)

	c.Kill(t)
	c.Start(t)
	b, err = read(cassandraSession(t, c.Addr(), keyspace), 10*time.Second)
	require.NoError(t, err)
	require.Equal(t, "x", b, "still there after a kill, at the same address")
}
