package storetest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

func testItemTypes(t *testing.T, s Store) {
	type types = map[string]likes.ItemType
	register := func(m types) error { return s.RegisterItemTypes(t.Context(), m) }
	requireTypes := func(want types) {
		got, err := s.ItemTypes(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	requireTypes(types{})
	require.NoError(t, register(types{"post": 1, "reel": 2}))
	require.NoError(t, register(types{"post": 1, "comment": 32767}), "reel is not configured any more, comment is new")
	want := types{"post": 1, "reel": 2, "comment": 32767}
	requireTypes(want)
	for says, m := range map[string]types{
		"the item type post is 5 in the configuration and 1 in the store":           {"post": 5, "video": 9},
		"the item type video is 2 in the configuration, which is reel in the store": {"post": 1, "video": 2},
		"set post: 1 again": {"post": 2, "reel": 1},
	} {
		err := register(m)
		require.ErrorIs(t, err, likes.ErrInvalid)
		require.ErrorContains(t, err, says)
		requireTypes(want)
	}
}

// testItemTypesConcurrent starts many instances at once that do not agree.
func testItemTypesConcurrent(t *testing.T, s Store) {
	const each = 3
	var won [2]atomic.Int64
	parallel(t, 2*each, func(ctx context.Context, n int) error {
		err := s.RegisterItemTypes(ctx, map[string]likes.ItemType{"post": likes.ItemType(1 + n%2), "reel": likes.ItemType(2 - n%2)})
		if err == nil {
			won[n%2].Add(1)
		} else if errors.Is(err, likes.ErrInvalid) {
			err = nil
		}
		return err
	})
	require.ElementsMatch(t, []int64{0, each}, []int64{won[0].Load(), won[1].Load()})
}
