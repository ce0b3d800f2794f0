package app

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAStoreThatHangsIsNotWaitedForLongerThanAStopMayTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		hang := make(chan struct{})
		began := time.Now()
		require.ErrorIs(t, within(ctx, func() error { <-hang; return nil }), context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
		close(hang)
		broken := errors.New("broken")
		require.ErrorIs(t, within(t.Context(), func() error { return broken }), broken)
	})
}
