package tiertest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

// FirstLikes lets one user like an item for the first time through two instances
// at the same moment, for many rounds: exactly one of the two answers may say
// that it changed something, and the count is 1. The obvious statement, which
// reads the old state before it has the row's lock, counts both.
//
// waits, if not nil, returns how often a transaction has waited for another one's
// row so far. The rounds prove something only where they collide, so at least a
// tenth of them must.
func FirstLikes(t *testing.T, a, b likes.Service, rounds int, waits func(context.Context) (int, error)) {
	e := newEnv(t, &Cluster{Services: []likes.Service{a, b}})
	before := waited(e, waits)
	item := e.item()
	for n, g := range edges(item, e.users(rounds)...) {
		rs := make([]likes.Result, 2)
		e.parallel(2, func(i int) error {
			rs[i] = apply1(e.Context(), e.Services[i], set(g))
			return rs[i].Err
		})
		outcomes := []likes.Outcome{rs[0].Outcome, rs[1].Outcome}
		require.ElementsMatch(e, []likes.Outcome{likes.Changed, likes.Unchanged}, outcomes, "round %d, %v", n, g)
		require.Equal(e, int64(n+1), e.count(item).N, "round %d", n)
	}
	if waits == nil {
		return
	}
	collided := waited(e, waits) - before
	t.Logf("%d rounds, %d waits for a row", rounds, collided)
	require.GreaterOrEqual(t, collided, rounds/10, "the two hardly ever met")
}

func waited(e *env, waits func(context.Context) (int, error)) int {
	e.Helper()
	if waits == nil {
		return 0
	}
	n, err := waits(e.Context())
	require.NoError(e, err)
	return n
}
