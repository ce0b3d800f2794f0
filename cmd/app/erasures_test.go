package app_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/cmd/app"
	"likectl/pkg/config"
	"likectl/pkg/likes"
	"likectl/tiers/tier1"
)

// syncBuffer is a log that is read while it is written.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// A server goes on with an erasure that broke off, may be stopped in the middle
// of it, and tells of the user by the hash only.
func TestServer_FinishesErasuresThatBrokeOff(t *testing.T) {
	cfg := config.Default()
	cfg.Data, cfg.Listen, cfg.AdminListen = t.TempDir(), "127.0.0.1:0", "127.0.0.1:0"
	const user, rows = likes.UserID(7_431_765_002), 300
	withTier := func(do func(*app.Tier)) {
		tier, err := app.OpenTier(t.Context(), cfg, app.Quiet(), tier1.Hooks{})
		require.NoError(t, err)
		do(tier)
		require.NoError(t, tier.Close(t.Context()))
	}
	var hash string
	withTier(func(tier *app.Tier) {
		ms := make([]likes.Mutation, rows)
		for i := range ms {
			ms[i] = likes.Mutation{Op: likes.Set, Edge: likes.Edge{
				Counter: likes.Likes, Item: likes.Item{Type: 1, ID: likes.ItemID(i + 1)}, User: user,
			}}
		}
		for _, r := range tier.Service.Apply(t.Context(), ms) {
			require.NoError(t, r.Err)
		}
		require.NoError(t, tier.People.BeginErase(t.Context(), []likes.UserID{user}, 0))
		hash = tier.People.HashUser(user).String()
	})

	var log syncBuffer
	serve := func(until func() bool) {
		server, err := app.Open(t.Context(), cfg, slog.New(slog.NewTextHandler(&log, nil)), false)
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(ctx) }()
		if until != nil {
			require.Eventually(t, until, 20*time.Second, time.Millisecond, "%v", &log)
		}
		stop()
		require.NoError(t, <-ended)
	}
	cfg.Erase.MaxRate = 1 // for 300 rows: it is stopped long before
	serve(nil)
	require.NotContains(t, log.String(), "finished an erasure")
	withTier(func(tier *app.Tier) {
		left, err := tier.People.Remains(t.Context(), user)
		require.NoError(t, err)
		require.True(t, left.Any())
	})

	cfg.Erase.MaxRate = 5000
	serve(func() bool { return strings.Contains(log.String(), "no erasure is left unfinished") })
	require.Contains(t, log.String(), "user_hash="+hash)
	require.NotContains(t, log.String(), "7431765002")
	withTier(func(tier *app.Tier) {
		left, err := tier.People.Remains(t.Context(), user)
		require.NoError(t, err)
		require.False(t, left.Any())
		require.ErrorIs(t, tier.Service.Apply(t.Context(), []likes.Mutation{{Op: likes.Set, Edge: likes.Edge{
			Counter: likes.Likes, Item: likes.Item{Type: 1, ID: 1}, User: user,
		}}})[0].Err, likes.ErrErased)
	})
}
