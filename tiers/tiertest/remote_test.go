package tiertest_test

import (
	"testing"

	"likectl/pkg/auth"
	"likectl/tiers/tiertest"
)

// The oracle behind the API, through pkg/client, passes what it passes without:
// with a service's token, and with each user's own.

func TestRemoteConformance(t *testing.T) {
	for name, scope := range map[string]auth.Scope{"service": auth.Service, "users": auth.User} {
		t.Run(name, func(t *testing.T) { tiertest.Run(t, tiertest.Remote(oracle(), scope)) })
	}
}

func TestRemoteMetamorphic(t *testing.T) {
	for name, scope := range map[string]auth.Scope{"service": auth.Service, "users": auth.User} {
		t.Run(name, func(t *testing.T) { tiertest.Metamorphic(t, tiertest.Remote(oracle(), scope)) })
	}
}
