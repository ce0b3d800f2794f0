package app

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/config"
	"likectl/pkg/likes"
)

func TestOpenExisting_SaysOfADatabaseThatIsAwayWhatItMeansAndWhatToRun(t *testing.T) {
	t.Setenv("LIKECTL_POSTGRES_DSN", "")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	away := free.Addr().String()
	require.NoError(t, free.Close())

	cfg := config.Default()
	cfg.Postgres.DSN = config.Secret("postgres://likectl:hush@" + away + "/likectl")
	cfg.Postgres.StatementTimeout = time.Second
	_, err = OpenExisting(t.Context(), cfg)
	require.ErrorIs(t, err, likes.ErrUnavailable)
	require.ErrorContains(t, err, away)
	require.ErrorContains(t, err, "no like is lost by that, and nothing was changed")
	require.ErrorContains(t, err, "`likectl doctor --dsn DSN`")
	require.NotContains(t, err.Error(), "hush")

	require.Equal(t, likes.ErrErased, Unreached(cfg, likes.ErrErased), "other errors have advice of their own")
	require.NoError(t, Unreached(cfg, nil))
}
