package auth

import (
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

func TestCache_IsBoundedAndKeepsWhatIsInUse(t *testing.T) {
	const size = 8
	c := newCache(size)
	c.put("in use", Identity{User: 1}, 1)
	for i := range 100 * size {
		c.put(strconv.Itoa(i), Identity{User: 2}, 1)
		id, ok := c.get("in use", 0)
		require.True(t, ok, "after %d others", i)
		require.EqualValues(t, 1, id.User)
		require.LessOrEqual(t, len(c.young)+len(c.old), 2*size)
	}
	_, ok := c.get("0", 0)
	require.False(t, ok, "what nobody asked for is forgotten")
}

func TestCache_UnderConcurrentUse(t *testing.T) {
	c := newCache(4)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 2000 {
				n := (g + i) % 16
				if id, ok := c.get(strconv.Itoa(n), 0); ok && int(id.User) != n {
					t.Errorf("token %d belongs to user %d", n, id.User)
				}
				c.put(strconv.Itoa(n), Identity{User: likes.UserID(n)}, 1)
			}
		})
	}
	wg.Wait()
}
