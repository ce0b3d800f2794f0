//go:build !ackbeforecommit

package tier1

import (
	"context"

	"likectl/pkg/store"
)

func commit(ctx context.Context, edges store.Edges, c store.Commit, out []store.Written) error {
	return edges.Commit(ctx, c, out)
}
