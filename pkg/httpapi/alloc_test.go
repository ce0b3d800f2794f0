//go:build !race

package httpapi

import (
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/auth"
)

// What one call allocates beside net/http and the service: its deadline, its
// mutation, three header values. Not under -race, where pools forget on purpose.
func TestAPI_AllocatesLittle(t *testing.T) {
	f := quiet(t)
	like := repeated(t, f, f.request("POST", "/v1/like", goodLike, f.token(1, auth.User)), goodLike)
	require.LessOrEqual(t, testing.AllocsPerRun(200, like), 10.0)
	// With velocity limits: the keys, one text each and their list. Without, above,
	// nothing: a guard that is not there is not asked.
	f.api.cfg.Abuse = velocityOnly(t)
	require.LessOrEqual(t, testing.AllocsPerRun(200, like), 14.0)
	f.api.cfg.Abuse = nil
	// With limits: two keys, two headers of a list and a text each.
	f.api.cfg.Rates = Rates{IP: limiter(t, "ip", 1_000_000), Like: limiter(t, "like", 1_000_000)}
	require.LessOrEqual(t, testing.AllocsPerRun(200, like), 16.0)
}
