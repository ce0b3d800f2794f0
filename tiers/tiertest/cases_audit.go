package tiertest

import (
	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

// requireNoDrift walks all counters of the cluster.
func requireNoDrift(e *env) {
	e.Helper()
	e.settle()
	var after store.Key
	for {
		a, err := e.Auditor.Audit(e.Context(), after, 1000)
		require.NoError(e, err)
		require.Empty(e, a.Drifts)
		if a.Next == (store.Key{}) {
			return
		}
		after = a.Next
	}
}

// drifts returns what the audit finds at one item.
func (e *env) drifts(item likes.Item) []store.Drift {
	e.Helper()
	a, err := e.Auditor.AuditItem(e.Context(), []store.Key{keyOf(item)})
	require.NoError(e, err)
	return a.Drifts
}

func keyOf(item likes.Item) store.Key { return store.Key{Counter: likes.Likes, Item: item} }

func case30(e *env) {
	const likers, missing = 10, 7
	item := e.item()
	users := e.users(likers + 1)
	e.bulk(mutations(set, edges(item, users[:likers]...)...))
	e.settle()
	require.Empty(e, e.drifts(item))
	require.NoError(e, e.Drift(e.Context(), keyOf(item), -missing))
	e.like(edges(item, users[likers])[0])
	e.settle()
	require.Equal(e, []store.Drift{{Key: keyOf(item), Stored: likers + 1 - missing, Edges: likers + 1}}, e.drifts(item))
	_, err := e.Auditor.Repair(e.Context(), keyOf(item))
	require.NoError(e, err)
	e.exact(item, users)
}

// case73 repairs a drifted counter over and over while likes run: the drift is
// repaired once and nothing is repaired that was right.
func case73(e *env) {
	const repairs, off = 60, 1000
	item := e.item()
	gs := edges(item, e.users(64)...)
	e.bulk(mutations(set, gs...))
	e.settle()
	e.whileToggling(gs, func() {
		for n := range repairs {
			drifted := n%20 == 0
			if drifted {
				require.NoError(e, e.Drift(e.Context(), keyOf(item), off))
			}
			d, err := e.Auditor.Repair(e.Context(), keyOf(item))
			require.NoError(e, err)
			if drifted {
				require.Equal(e, int64(off), d.Stored-d.Edges, "a repair measures the drift and nothing else")
			} else {
				require.Equal(e, d.Edges, d.Stored, "a drift came from nowhere or was repaired twice")
			}
		}
	})
	e.agree(item, gs)
	require.Empty(e, e.drifts(item))
}
