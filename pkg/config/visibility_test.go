package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/outside"
)

func TestVisibility_BadValuesAreRefusedAndNamed(t *testing.T) {
	for yaml, want := range map[string]string{
		"{cache: 0s}":                          "visibility.cache",
		"{cache: 2m}":                          "visibility.cache: want at most 1m0s",
		"{max_entries: -1}":                    "visibility.max_entries",
		"{max_entries: 10000001}":              "visibility.max_entries: want at most",
		"{authorizer: {timeout: 0s}}":          "visibility.authorizer.timeout",
		"{authorizer: {max_in_flight: 0}}":     "visibility.authorizer.max_in_flight",
		"{authorizer: {max_in_flight: 10001}}": "visibility.authorizer.max_in_flight: want at most",
		"{authorizer: {url: \"https://a.example/\", timeout: 5s}}": "visibility.authorizer.timeout: want less than http.request_timeout",
		"{authorizer: {url: \"http://authz.example/\"}}":           "visibility.authorizer: url: want https, except on this machine",
		"{authorizer: {url: \"https://a:b@authz.example/\"}}":      "visibility.authorizer: url",
		"{authorizer: {token_file: t}}":                            "visibility.authorizer.token_file: read only with",
	} {
		_, err := Load(write(t, "visibility: "+yaml+"\n"), nil)
		require.ErrorIs(t, err, likes.ErrInvalid, yaml)
		require.ErrorContains(t, err, want, yaml)
	}
}

func TestVisibility_AnAuthorizer(t *testing.T) {
	got, err := Load(write(t, "visibility: {authorizer: {url: \"https://authz.example/decide\", timeout: 1s, token_file: t}}\n"), nil)
	require.NoError(t, err)
	require.Equal(t, outside.Endpoint{
		URL: "https://authz.example/decide", Timeout: time.Second, TokenFile: "t", MaxInFlight: Default().Visibility.Authorizer.MaxInFlight,
	}, got.Visibility.Authorizer.Endpoint())
	require.False(t, got.Items.Registered)
}
