//go:build !race

package version

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Not under -race, where a pool forgets on purpose.
func TestAppend_AllocatesNothing(t *testing.T) {
	c, v, buf := codec(t), sample(), make([]byte, 0, MaxToken)
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := c.Append(buf, v); err != nil {
			t.Error(err)
		}
	})
	require.Less(t, allocs, 1.0) // the collector may empty the pool
}
