package tiertest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/auth"
	"likectl/pkg/datadir"
	"likectl/tiers/tiertest"
)

// embedded is a crash target on a data folder of its own.
func embedded(t *testing.T, tags ...string) tiertest.CrashTarget {
	t.Helper()
	data := t.TempDir()
	dir, err := datadir.Open(data)
	require.NoError(t, err)
	authority, err := auth.New(auth.Default(dir.Secret()))
	require.NoError(t, err)
	token, err := authority.Mint(1, auth.Service, time.Hour)
	require.NoError(t, err)
	require.NoError(t, dir.Close())
	return tiertest.CrashTarget{
		Binary: tiertest.Build(t, tags...), Args: []string{"--data", data}, ServiceToken: token,
	}
}

func TestCrashEmbedded(t *testing.T) {
	target := embedded(t)
	if testing.Short() {
		target.Kills, target.Between = 3, 300
	}
	tiertest.Crash(t, target)
}

// TestCrashCatchesAckBeforeCommit tests the suite: a binary that answers before
// it has committed is found out.
func TestCrashCatchesAckBeforeCommit(t *testing.T) {
	target := embedded(t, "ackbeforecommit")
	target.Kills, target.Between = 5, 300
	tiertest.CrashCatches(t, target)
}
