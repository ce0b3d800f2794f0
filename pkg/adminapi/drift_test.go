package adminapi_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/adminapi"
	"likectl/pkg/likes"
	"likectl/pkg/reconcile"
	"likectl/pkg/store"
)

// TestWalksTellHowOldDriftIs: what a walk finds is not older than the last one
// that left all counters right.
func TestWalksTellHowOldDriftIs(t *testing.T) {
	a := &auditor{counters: 10, wrong: map[store.Key]store.Drift{likeKey(7): drift(7)}}
	type ended struct {
		config reconcile.Config
		sum    reconcile.Summary
		err    error
	}
	var told []reconcile.Found
	var ends []ended
	server := httptest.NewServer(adminapi.New(adminapi.Config{
		Auditor: a, Authorize: func(*http.Request) error { return nil }, Log: slog.New(slog.DiscardHandler),
		Drifted: func(f reconcile.Found) { told = append(told, f) },
		Reconciled: func(c reconcile.Config, sum reconcile.Summary, err error) {
			ends = append(ends, ended{c, sum, err})
		},
	}))
	defer server.Close()
	c := client(t, server.URL)
	walk := func(dryRun bool, keys ...store.Key) (found []reconcile.Found) {
		_, err := c.Reconcile(t.Context(), reconcile.Config{PerSecond: reconcile.MaxPerSecond, DryRun: dryRun, Keys: keys},
			func(int64, int64) {}, func(f reconcile.Found) error { found = append(found, f); return nil })
		require.NoError(t, err)
		require.Equal(t, told[len(told)-len(found):], found)
		return found
	}
	require.Zero(t, walk(true)[0].RightAt, "nothing is known at first")
	require.Zero(t, walk(true)[0].RightAt, "a dry run leaves it as it is")
	require.Zero(t, walk(false, likeKey(7))[0].RightAt)
	a.wrong[likeKey(8)] = drift(8)
	before := time.Now()
	require.Zero(t, walk(false)[0].RightAt, "of one counter says nothing of others")
	after := time.Now()
	a.wrong[likeKey(9)] = drift(9)
	f := walk(true)[0]
	require.WithinRange(t, f.RightAt, before, after)
	require.Equal(t, reconcile.Missing, f.Cause())
	require.Equal(t, f.RightAt, walk(false, likeKey(9))[0].RightAt)

	require.Len(t, ends, 6)
	require.Equal(t, reconcile.Summary{Checked: 10, Drifted: 1, Magnitude: 5}, ends[4].sum)
	require.Equal(t, f.RightAt, ends[4].config.RightAt)
	a.err = likes.Errorf(likes.ErrFenced, "another epoch")
	_, err := c.Reconcile(t.Context(), reconcile.Config{PerSecond: 1}, nil, nil)
	require.Error(t, err)
	require.ErrorIs(t, ends[6].err, likes.ErrFenced)
}
