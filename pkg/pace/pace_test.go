package pace_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/pace"
)

func TestWorkTakesAsLongAsItsRateSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, began := pace.New(100), time.Now()
		for range 10 {
			require.NoError(t, p.Wait(t.Context(), 50))
		}
		require.Equal(t, 5*time.Second, time.Since(began))
	})
}

func TestAStallIsNotCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pace.New(100)
		time.Sleep(time.Hour) // the bubble's
		began := time.Now()
		for range 3 {
			require.NoError(t, p.Wait(t.Context(), 100))
		}
		require.Equal(t, 2*time.Second, time.Since(began), "the first was paid for by the stall, the others are not")
	})
}

func TestTheEndOfTheContextEndsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, pace.New(1).Wait(ctx, 1000), context.DeadlineExceeded)
	})
}
