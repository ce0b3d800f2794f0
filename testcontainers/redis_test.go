package containers_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	containers "likectl/testcontainers"
)

func redisClient(t *testing.T, addr string) *redis.Client {
	t.Helper()
	r := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestRedis_PauseGivesNoAnswer(t *testing.T) {
	server := containers.SharedRedis(t)
	r := redisClient(t, server.Addr())
	require.NoError(t, r.Set(t.Context(), "a", "1", 0).Err())
	server.Pause(t)
	requireTimeout(t, r.Get(within(t, 200*time.Millisecond), "a").Err())
	server.Unpause(t)
	require.Equal(t, "1", r.Get(t.Context(), "a").Val())
}

func TestRedis_ForgottenFaultsAreUndone(t *testing.T) {
	server := containers.SharedRedis(t)
	faults := map[string]func(testing.TB){"kill": server.Kill, "pause": server.Pause, "cut": server.Cut}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			fault(t)
			require.Error(t, redisClient(t, server.Addr()).Ping(within(t, 200*time.Millisecond)).Err())
		})
		require.NoError(t, redisClient(t, server.Addr()).Ping(within(t, time.Second)).Err(), "after %s", name)
	}
}

func TestProxy(t *testing.T) {
	server := containers.SharedRedis(t)
	proxy := containers.NewProxy(t, server.Addr())
	through, direct := redisClient(t, proxy.Addr()), redisClient(t, server.Addr())
	soon := 200 * time.Millisecond
	require.NoError(t, through.Set(t.Context(), "p", 0, 0).Err())

	proxy.Latency(t, 100*time.Millisecond)
	begun := time.Now()
	require.NoError(t, through.Get(t.Context(), "p").Err())
	require.GreaterOrEqual(t, time.Since(begun), 100*time.Millisecond)
	proxy.Clear(t)

	proxy.LoseAnswers(t)
	requireTimeout(t, through.Incr(within(t, soon), "p").Err())
	require.Equal(t, "1", direct.Get(t.Context(), "p").Val(), "the request took effect, its answer was lost")
	proxy.Clear(t)

	require.NoError(t, through.Get(t.Context(), "p").Err()) // an open connection, past its handshake
	proxy.BlackHole(t)
	requireTimeout(t, through.Incr(within(t, soon), "p").Err())
	require.Equal(t, "1", direct.Get(t.Context(), "p").Val(), "the request was lost")
	proxy.Clear(t)

	proxy.Reset(t)
	begun = time.Now()
	require.Error(t, through.Get(t.Context(), "p").Err())
	require.Less(t, time.Since(begun), time.Second, "a reset is told at once")
	proxy.Clear(t)

	addr := proxy.Addr()
	proxy.Down(t)
	require.ErrorContains(t, through.Get(t.Context(), "p").Err(), "refused")
	proxy.Up(t)
	require.Equal(t, addr, proxy.Addr())
	require.Equal(t, "1", through.Get(t.Context(), "p").Val())
}
