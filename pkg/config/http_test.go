package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

func TestBadHTTPIsRefusedAndNamed(t *testing.T) {
	for yaml, want := range map[string]string{
		`cors: {origins: ["https://a.example/"]}`:     "http.cors: origins[0]",
		`cors: {origins: ["*", "https://a.example"]}`: "http.cors: origins[0]",
		`cors: {origins: {a: b}}`:                     "http.cors.origins",
		`min_version_wait: 0s`:                        "http.min_version_wait",
		`min_version_wait: 6s`:                        "http.min_version_wait: want at most http.request_timeout",
		`cors: {max_age: 0s}`:                         "http.cors.max_age",
		`cors: {origins: ["*"], max_age: 25h}`:        "http.cors: max age",
		`cors: {orgins: ["*"]}`:                       "http.cors.orgins: there is no such key; the nearest is http.cors.origins",
	} {
		_, err := Load(write(t, "http:\n  "+yaml+"\n"), nil)
		require.ErrorIs(t, err, likes.ErrInvalid, yaml)
		require.ErrorContains(t, err, want, yaml)
	}
}

func TestCORS(t *testing.T) {
	got, err := Load(write(t, "http:\n  cors: {origins: [\"https://a.example\", \"http://localhost:3000\"], max_age: 10m}\n"), nil)
	require.NoError(t, err)
	require.Equal(t, CORS{Origins: []string{"https://a.example", "http://localhost:3000"}, MaxAge: 10 * time.Minute}, got.HTTP.CORS)
	t.Setenv("LIKECTL_HTTP_CORS_ORIGINS", "https://b.example,https://c.example")
	got, err = Load("", nil)
	require.NoError(t, err)
	require.Equal(t, []string{"https://b.example", "https://c.example"}, got.HTTP.CORS.Origins)
}
