package postgres_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"likectl/pkg/store/postgres"
	containers "likectl/testcontainers"
)

// A step of an audit costs the same wherever in the walk it is. Once each key was
// found by reading all counters before it, and a walk over 100,000 took minutes.
func TestAStepOfAnAuditReadsWhatItCompares(t *testing.T) {
	r := newRaw(t, containers.SharedPostgres(t))
	const items, step = 50_000, 20
	require.NoError(t, r.Exec(t.Context(), fmt.Sprintf(`insert into counters (counter, item_type, item_id, count, version)
		select c, 1, n, 1, 1 from generate_series(1, %d) n, unnest('{1,4}'::smallint[]) c`, items)))
	require.NoError(t, r.Exec(t.Context(), "prepare audit as "+postgres.AuditSQL))
	for _, analyzed := range []bool{false, true} {
		if analyzed {
			require.NoError(t, r.Exec(t.Context(), "vacuum analyze counters"))
		}
		for _, after := range []string{"0, 0, 0", "1, 1, 40000", "4, 1, 40000"} {
			rows, err := r.conn.Query(t.Context(), fmt.Sprintf("explain (analyze, buffers, format json) execute audit(%s, %d, '{1,4}')", after, step),
				pgx.QueryExecModeSimpleProtocol)
			require.NoError(t, err)
			text, err := pgx.CollectOneRow(rows, pgx.RowTo[string])
			require.NoError(t, err)
			var plan []struct {
				Plan struct {
					Rows float64 `json:"Actual Rows"`
					Hit  int     `json:"Shared Hit Blocks"`
					Read int     `json:"Shared Read Blocks"`
				}
			}
			require.NoError(t, json.Unmarshal([]byte(text), &plan))
			require.InDelta(t, step, plan[0].Plan.Rows, 0)
			require.Less(t, plan[0].Plan.Hit+plan[0].Plan.Read, 40*step, "pages after %s, analyzed %t: %s", after, analyzed, text)
		}
	}
}
