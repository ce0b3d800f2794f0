package probe_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/probe"
)

var errDisk = likes.Errorf(likes.ErrUnavailable, "the disk is full")

func TestWrites_ProbesOnlyWhereNothingElseTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probes := 0
		w := probe.NewWrites(func(context.Context) error { probes++; return nil })
		require.NoError(t, w.Check(t.Context()))
		require.Equal(t, 1, probes, "at first nothing is known")
		for range 9 {
			time.Sleep(time.Second)
			require.NoError(t, w.Check(t.Context()))
		}
		require.Equal(t, 1, probes)
		time.Sleep(time.Second)
		require.NoError(t, w.Check(t.Context()))
		require.Equal(t, 2, probes, "an idle process asks once in ten seconds")
		for range 60 { // one that writes never does
			time.Sleep(time.Second)
			w.Done(nil)
			require.NoError(t, w.Check(t.Context()))
		}
		require.Equal(t, 2, probes)
	})
}

func TestWrites_AFailedTransactionCountsUntilAWriteGoesThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken error
		w := probe.NewWrites(func(context.Context) error { return broken })
		require.NoError(t, w.Check(t.Context()))
		for _, err := range []error{errDisk, likes.Errorf(likes.ErrUncertain, "no answer")} {
			w.Done(err)
			require.Equal(t, err, w.Check(t.Context()))
			w.Done(nil)
			require.NoError(t, w.Check(t.Context()), "a real one that goes through ends it at once")
		}
		// While batches fail, a small write that would go through is no comfort.
		for range 5 {
			w.Done(errDisk)
			time.Sleep(time.Second)
			require.Equal(t, errDisk, w.Check(t.Context()))
		}
		// Without any, the probe decides.
		broken = errors.New("still")
		time.Sleep(time.Second)
		require.Equal(t, broken, w.Check(t.Context()))
		time.Sleep(time.Hour)
		require.Equal(t, broken, w.Check(t.Context()), "it does not get well by waiting")
		broken = nil
		require.NoError(t, w.Check(t.Context()))
	})
}

func TestWrites_ErrorsThatAreNotTheStoresDoNotCount(t *testing.T) {
	w := probe.NewWrites(func(context.Context) error { return nil })
	require.NoError(t, w.Check(t.Context()))
	for _, err := range []error{likes.ErrOverloaded, likes.ErrInvalid, likes.ErrFenced, likes.ErrErased, errors.New("a defect")} {
		w.Done(err)
		require.NoError(t, w.Check(t.Context()))
	}
}

func TestWrites_AFailureDuringTheProbeIsNotForgotten(t *testing.T) {
	var w *probe.Writes
	w = probe.NewWrites(func(context.Context) error { w.Done(errDisk); return nil })
	require.Equal(t, errDisk, w.Check(t.Context()))
}
