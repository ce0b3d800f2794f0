package tiertest_test

import (
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/auth"
	"likectl/pkg/httpapi"
	"likectl/pkg/likes"
	"likectl/pkg/memory"
	"likectl/pkg/version"
	"likectl/pkg/visibility"
	"likectl/tiers/tiertest"
)

// TestHTTP runs the suite against the API over the oracle, as two processes.
func TestHTTP(t *testing.T) { tiertest.HTTP(t, oracleOverHTTP(t, false)) }

func TestUnseen(t *testing.T) { tiertest.Unseen(t, oracleOverHTTP(t, true)) }

func oracleOverHTTP(t *testing.T, registered bool) tiertest.HTTPTarget {
	t.Helper()
	secret := make([]byte, auth.SecretSize)
	authority, err := auth.New(auth.Default(secret))
	require.NoError(t, err)
	versions, err := version.New(secret)
	require.NoError(t, err)
	log := slog.New(slog.DiscardHandler)
	service := memory.New()
	var urls []string
	for range 2 {
		guard, err := visibility.New(visibility.Config{Source: service, Registered: registered, Cache: time.Second, MaxEntries: 1 << 16})
		require.NoError(t, err)
		api, err := httpapi.New(httpapi.Config{
			Service: service, Guard: guard, Catalog: service, Auth: authority, Versions: versions, Types: likes.DefaultItemTypes(),
			Health: httpapi.NewHealth(log), Limits: httpapi.DefaultLimits(), Logger: log,
		})
		require.NoError(t, err)
		server := httptest.NewServer(api)
		t.Cleanup(server.Close)
		urls = append(urls, server.URL)
	}
	mint := func(u likes.UserID, scope auth.Scope) string {
		token, err := authority.Mint(u, scope, time.Hour)
		require.NoError(t, err)
		return token
	}
	return tiertest.HTTPTarget{
		BaseURLs:     urls,
		UserToken:    func(u likes.UserID) string { return mint(u, auth.User) },
		ServiceToken: mint(1, auth.Service),
	}
}
