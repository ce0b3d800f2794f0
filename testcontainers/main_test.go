package containers_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	containers "likectl/testcontainers"
)

func TestMain(m *testing.M) { containers.Main(m) }

// within returns a context that ends after d: what a client with a timeout would use.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// requireTimeout demands that nobody answered, in contrast to a refusal or a reset.
func requireTimeout(t *testing.T, err error) {
	t.Helper()
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	require.True(t, timeout.Timeout(), err)
}
