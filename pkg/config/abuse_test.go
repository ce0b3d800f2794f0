package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/abuse"
	"likectl/pkg/likes"
	"likectl/pkg/limit"
	"likectl/pkg/outside"
)

func TestNothingAgainstAbuseIsOnByDefault(t *testing.T) {
	require.True(t, Default().Guard().Empty())
	for _, yaml := range []string{
		"velocity: {item: [{limit: 5, window: 1m}]}", "reputation: {file: a}", "scorer: {url: 'https://a.example/'}",
	} {
		cfg, err := Load(write(t, "abuse:\n  "+yaml+"\n"), nil)
		require.NoError(t, err, yaml)
		require.False(t, cfg.Guard().Empty(), yaml)
	}
}

func TestAbuse(t *testing.T) {
	cfg, err := Load(write(t, `
limits: {max_keys: 77}
abuse:
  velocity:
    user_owner: [{limit: 20, window: 1m}]
    item: [{limit: 3000, window: 1m}, {limit: 9000, window: 1h}]
    ip: [{limit: 300, window: 1m}]
    device: [{limit: 60, window: 1m}]
  reputation: {file: list.txt, slow_factor: 4}
  scorer: {url: 'http://127.0.0.1:9/score', token_file: t, timeout: 20ms, on_error: refuse, max_in_flight: 3}
  batch: true
  device_header: X-Device
  refresh: 9s
`), nil)
	require.NoError(t, err)
	require.Equal(t, abuse.Config{
		Velocity: abuse.Velocity{
			UserOwner: []limit.Limit{{Max: 20, Window: time.Minute}},
			Item:      []limit.Limit{{Max: 3000, Window: time.Minute}, {Max: 9000, Window: time.Hour}},
			IP:        []limit.Limit{{Max: 300, Window: time.Minute}},
			Device:    []limit.Limit{{Max: 60, Window: time.Minute}},
			MaxKeys:   77,
		},
		List: "list.txt", SlowFactor: 4, Batch: true, Refresh: 9 * time.Second,
		Scorer: abuse.Scorer{
			Endpoint:   outside.Endpoint{URL: "http://127.0.0.1:9/score", TokenFile: "t", Timeout: 20 * time.Millisecond, MaxInFlight: 3},
			FailClosed: true,
		},
	}, cfg.Guard())
	require.Equal(t, "X-Device", cfg.Abuse.DeviceHeader)
}

func TestBadConfigurationAgainstAbuseIsRefusedAndNamed(t *testing.T) {
	for yaml, want := range map[string]string{
		"abuse:\n  velocity: {item: [{limit: 0, window: 1m}]}\n":           "abuse.velocity.item: limit 0",
		"abuse:\n  velocity: {user_owner: [{limit: 5}]}\n":                 "abuse.velocity.user_owner: window 0s",
		"abuse:\n  velocity: {ip: [{limit: 5, window: 1ms}]}\n":            "abuse.velocity.ip: window 1ms",
		"abuse:\n  velocity: {device: [{limit: -1, window: 1m}]}\n":        "abuse.velocity.device: limit -1",
		"abuse:\n  velocity: {user: [{limit: 5, window: 1m}]}\n":           "abuse.velocity.user: there is no such key",
		"abuse:\n  device_header: Like Device\n":                           "abuse.device_header",
		"abuse:\n  device_header: ''\n":                                    "abuse.device_header",
		"abuse:\n  refresh: 0s\n":                                          "abuse.refresh",
		"abuse:\n  refresh: 25h\n":                                         "abuse.refresh: want at most 24h",
		"abuse:\n  reputation: {slow_factor: 0}\n":                         "abuse.reputation.slow_factor",
		"abuse:\n  reputation: {slow_factor: 1}\n":                         "abuse.reputation.slow_factor: want at least 2",
		"abuse:\n  scorer: {on_error: ignore}\n":                           "abuse.scorer.on_error: want allow or refuse",
		"abuse:\n  scorer: {timeout: 50}\n":                                "abuse.scorer.timeout: durations need a unit: 50s",
		"abuse:\n  scorer: {timeout: 5s}\n":                                "abuse.scorer.timeout: want less than http.request_timeout",
		"abuse:\n  scorer: {url: 'http://localhost/', timeout: -1s}\n":     "abuse.scorer.timeout",
		"abuse:\n  scorer: {url: 'http://localhost/', max_in_flight: 0}\n": "abuse.scorer.max_in_flight",
		"abuse:\n  scorer: {max_in_flight: 10001}\n":                       "abuse.scorer.max_in_flight: want at most 10000",
		"abuse:\n  scorer: {token_file: t}\n":                              "abuse.scorer.token_file: is read only with abuse.scorer.url",
		"abuse:\n  scorer: {url: 'http://a.example/'}\n":                   "abuse.scorer: url: want https",
		"abuse:\n  scorer: {url: 'https://u:p@a.example/'}\n":              "abuse.scorer: url: want https://HOST/PATH without a password",
		"abuse:\n  scorer: {url: 'a.example'}\n":                           "abuse.scorer: url: want https://HOST/PATH",
	} {
		_, err := Load(write(t, yaml), nil)
		require.ErrorIs(t, err, likes.ErrInvalid, yaml)
		require.ErrorContains(t, err, want, yaml)
	}
}
