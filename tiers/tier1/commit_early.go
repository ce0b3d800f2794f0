//go:build ackbeforecommit

package tier1

import (
	"context"
	"slices"

	"likectl/pkg/store"
)

// commit is the planted bug that the crash suite must find: it answers before
// the transaction has committed. Never built into anything that serves.
func commit(_ context.Context, edges store.Edges, c store.Commit, out []store.Written) error {
	c.Writes = slices.Clone(c.Writes)
	for i, w := range c.Writes {
		out[i] = store.Written{Applied: true, Was: !w.Liked, Clock: w.Clock}
	}
	go func() { _ = edges.Commit(context.Background(), c, make([]store.Written, len(c.Writes))) }()
	return nil
}
