package storetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

func testProbeWrite(t *testing.T, s Store) {
	out := make([]store.Written, 1)
	require.NoError(t, s.Commit(t.Context(), store.Commit{Writes: []store.Write{set(1, 1, 0)}}, out))
	tables := []string{"edges", "counters", "tally_events", "item_types", "likectl_meta"}
	rows := func() (n []int64) {
		for _, table := range tables {
			count, err := s.Int(t.Context(), "select count(*) from "+table)
			require.NoError(t, err)
			n = append(n, count)
		}
		epoch, err := s.Int(t.Context(), "select epoch from likectl_meta")
		require.NoError(t, err)
		return append(n, epoch)
	}
	before := rows()
	for range 3 {
		require.NoError(t, s.ProbeWrite(t.Context()))
	}
	require.Equal(t, before, rows())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.ProbeWrite(ctx), likes.ErrUnavailable)
}
