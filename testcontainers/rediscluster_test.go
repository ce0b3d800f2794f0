package containers_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	containers "likectl/testcontainers"
)

func clusterClient(t *testing.T, c *containers.RedisCluster) *redis.ClusterClient {
	t.Helper()
	r := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: c.Addrs(), ContextTimeoutEnabled: true, DialerRetries: 1,
		ClusterStateReloadInterval: 200 * time.Millisecond, // a failed dial does not reload; the default of 60 s would
	})
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestRedisCluster_WriteSurvivesFailover(t *testing.T) {
	c := containers.SharedRedisCluster(t)
	r := clusterClient(t, c)
	require.NoError(t, r.Set(t.Context(), "a", "1", 0).Err())
	master := c.MasterOf(t, "a")
	waited, err := redisClient(t, master).Wait(t.Context(), 1, time.Second).Result()
	require.NoError(t, err)
	require.EqualValues(t, 1, waited, "the replica has it")

	c.KillNode(t, master)
	require.Eventually(t, func() bool {
		return r.Get(within(t, 500*time.Millisecond), "a").Val() == "1" && r.Set(within(t, 500*time.Millisecond), "b{a}", "2", 0).Err() == nil
	}, 20*time.Second, 50*time.Millisecond, "the promoted replica serves reads and writes")
	require.NotEqual(t, master, c.MasterOf(t, "a"))

	c.StartNode(t, master)
	require.Contains(t, redisClient(t, master).Info(t.Context(), "replication").Val(), "role:slave", "the old master follows")
}

func TestRedisCluster_CutPeersLosesWritesThatClientsSawAcknowledged(t *testing.T) {
	c := containers.SharedRedisCluster(t)
	r := clusterClient(t, c)
	master := c.MasterOf(t, "k")
	old := redisClient(t, master)
	require.NoError(t, old.Set(t.Context(), "k", "before", 0).Err())
	require.EqualValues(t, 1, old.Wait(t.Context(), 1, time.Second).Val())

	c.CutPeers(t, master)
	require.NoError(t, old.Set(t.Context(), "k", "lost", 0).Err(), "clients still reach the old master")
	require.Eventually(t, func() bool {
		v, err := r.Get(within(t, 500*time.Millisecond), "k").Result()
		return err == nil && v == "before"
	}, 20*time.Second, 50*time.Millisecond, "the promoted replica never saw the write")
	c.Heal(t)
	require.Eventually(t, func() bool {
		return strings.Contains(old.Info(t.Context(), "replication").Val(), "master_link_status:up")
	}, 20*time.Second, 50*time.Millisecond, "the old master joins again as a replica")
}

func TestRedisCluster_CutAndPausedNodesAreSilent(t *testing.T) {
	c := containers.SharedRedisCluster(t)
	addr := c.Addrs()[0]
	soon := 200 * time.Millisecond
	c.CutNode(t, addr)
	require.Error(t, redisClient(t, addr).Ping(within(t, soon)).Err())
	c.Heal(t)
	require.NoError(t, redisClient(t, addr).Ping(t.Context()).Err())
	c.PauseNode(t, addr)
	require.Error(t, redisClient(t, addr).Ping(within(t, soon)).Err())
	c.UnpauseNode(t, addr)
	require.NoError(t, redisClient(t, addr).Ping(t.Context()).Err())
}
