package lifecycle_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/lifecycle"
)

func TestEverythingIsClosedInReverseInSpiteOfErrors(t *testing.T) {
	var s lifecycle.Stack
	var order []string
	broken := errors.New("broken")
	for _, name := range []string{"store", "tier", "listener"} {
		s.Push(name, func(context.Context) error {
			order = append(order, name)
			if name == "tier" {
				return broken
			}
			return nil
		})
	}
	err := s.Close(t.Context(), slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "close tier")
	require.Equal(t, []string{"listener", "tier", "store"}, order)
	require.NoError(t, s.Close(t.Context(), slog.New(slog.DiscardHandler)), "closed twice")
	require.Len(t, order, 3)
}
