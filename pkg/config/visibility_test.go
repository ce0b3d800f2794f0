package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

func TestVisibility_BadValuesAreRefusedAndNamed(t *testing.T) {
	for yaml, want := range map[string]string{
		"{cache: 0s}":                                         "visibility.cache",
		"{cache: 2m}":                                         "visibility.cache: want at most 1m0s",
		"{max_entries: -1}":                                   "visibility.max_entries",
		"{max_entries: 10000001}":                             "visibility.max_entries: want at most",
		"{authorizer: {timeout: 0s}}":                         "visibility.authorizer.timeout",
		"{authorizer: {max_concurrent: 0}}":                   "visibility.authorizer.max_concurrent",
		"{authorizer: {max_concurrent: 10001}}":               "visibility.authorizer.max_concurrent: want at most",
		"{authorizer: {url: \"http://authz.example/\"}}":      "visibility.authorizer: url: want https, except on this machine",
		"{authorizer: {url: \"https://a:b@authz.example/\"}}": "visibility.authorizer: url",
		"{authorizer: {token_file: t}}":                       "visibility.authorizer.token_file: read only with",
	} {
		_, err := Load(write(t, "visibility: "+yaml+"\n"), nil)
		require.ErrorIs(t, err, likes.ErrInvalid, yaml)
		require.ErrorContains(t, err, want, yaml)
	}
}

func TestVisibility_AnAuthorizer(t *testing.T) {
	got, err := Load(write(t, "visibility: {authorizer: {url: \"https://authz.example/decide\", timeout: 1s}}\n"), nil)
	require.NoError(t, err)
	outside := got.Visibility.Authorizer.Outside(likes.DefaultItemTypes())
	require.NoError(t, outside.Check())
	require.Equal(t, "https://authz.example/decide", outside.URL)
	require.Equal(t, time.Second, outside.Timeout)
	require.Equal(t, Default().Visibility.Authorizer.MaxConcurrent, outside.MaxConcurrent)
	require.False(t, got.Items.Registered)
}
