package app_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"likectl/cmd/app"
	"likectl/cmd/cli"
	"likectl/pkg/config"
)

// A served API accepts the tokens of a configured issuer, for what its key may
// do, and stops when the file has another key.
func TestServer_AcceptsTheTokensOfAuthKeys(t *testing.T) {
	dir := t.TempDir()
	keyFile := filepath.Join(dir, "idp.pem")
	key := newKey(t, keyFile)
	cfg := config.Default()
	cfg.Data, cfg.Listen, cfg.AdminListen = filepath.Join(dir, "data"), "127.0.0.1:0", "127.0.0.1:0"
	cfg.Auth.FileRefresh = 5 * time.Millisecond
	cfg.Auth.Keys = []config.AuthKey{{
		File: keyFile, Alg: "EdDSA", KID: "k", Issuer: "idp", Audience: "likes", Scopes: []string{"user"}, ScopeClaim: "scope",
	}}
	server, err := app.Open(t.Context(), cfg, slog.New(slog.DiscardHandler), false)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()

	like := func(scope string) int {
		token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{
			"iss": "idp", "aud": "likes", "sub": "42", "scope": scope, "exp": time.Now().Add(time.Hour).Unix(),
		})
		token.Header["kid"] = "k"
		signed, err := token.SignedString(key)
		require.NoError(t, err)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+server.Addr()+"/v1/like",
			strings.NewReader(`{"item_id":"1","item_type":"post"}`))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+signed)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	require.Equal(t, http.StatusOK, like("user"))
	require.Equal(t, http.StatusUnauthorized, like("service"))
	require.Equal(t, http.StatusUnauthorized, like("admin"))
	newKey(t, keyFile)
	require.Eventually(t, func() bool { return like("user") == http.StatusUnauthorized }, 10*time.Second, time.Millisecond)
	http.DefaultClient.CloseIdleConnections()
	stop()
	require.NoError(t, <-ended)

	require.NoError(t, os.WriteFile(keyFile, []byte("none"), 0o600))
	_, err = app.Open(t.Context(), cfg, slog.New(slog.DiscardHandler), false)
	require.Equal(t, cli.Usage, cli.CodeOf(err))
	require.ErrorContains(t, err, "auth.keys[0]: key file "+keyFile)
}

// newKey makes a key, writes the public half to a file in one step, and returns
// the private one.
func newKey(t *testing.T, name string) ed25519.PrivateKey {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(public)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name+".next", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600))
	require.NoError(t, os.Rename(name+".next", name))
	return private
}
