package postgres_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store/postgres"
	containers "likectl/testcontainers"
)

// TestWhatWasGivenUpDoesNotComeBack: a like that is still on its way when its
// sender has given it up must not undo the unlike that was answered since.
func TestWhatWasGivenUpDoesNotComeBack(t *testing.T) {
	server := containers.SharedPostgres(t)
	r := newRaw(t, server)
	proxy := containers.NewProxy(t, server.Addr())
	c := config(strings.Replace(r.dsn, server.Addr(), proxy.Addr(), 1) + "&application_name=slow")
	c.MaxConns = 1
	slow, err := postgres.Open(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, slow.Close()) })
	require.NoError(t, commit(t.Context(), slow, like(1, 1)), "in time it is applied")

	proxy.DelayRequests(t, time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, commit(ctx, slow, like(1, 1)), likes.ErrUncertain)
	unlike := like(1, 1)
	unlike.Liked = false
	require.NoError(t, commit(t.Context(), r, unlike))
	poll(t, "the session that gets the like has ended", func() bool {
		n, err := r.Int(t.Context(), "select count(*) from pg_stat_activity where application_name = 'slow' and datname = current_database()")
		require.NoError(t, err)
		return n == 0
	})
	out := make([]likes.Register, 1)
	require.NoError(t, r.Registers(t.Context(), likes.Likes, 1, []likes.Item{{Type: 1, ID: 1}}, out))
	require.False(t, out[0].Liked, "the unlike was answered last")
	requireExact(t, r)
}

// TestAServerClockThatJumpsCostsARepeat: the estimate of the server's clock is
// far behind, as after a fail-over or a step of the clock.
func TestAServerClockThatJumpsCostsARepeat(t *testing.T) {
	r := newRaw(t, containers.SharedPostgres(t))
	postgres.SetServerClock(r.Store, time.Now().Add(-time.Hour))
	require.NoError(t, commit(t.Context(), r, like(1, 1)))
	require.NoError(t, commit(t.Context(), r, like(2, 1)))
	requireExact(t, r)
}
