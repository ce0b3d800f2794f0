package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/retry"
)

func TestDo(t *testing.T) {
	away := likes.Errorf(likes.ErrUnavailable, "away")
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		errs  []error // of the tries; nil after that
		tries int
		want  error
	}{
		"at once":          {nil, 1, nil},
		"after a while":    {[]error{away, away, away}, 4, nil},
		"never":            {[]error{away, away, away, away, away, away, away}, 6, away},
		"fails for good":   {[]error{broken}, 1, broken},
		"fails in the end": {[]error{away, broken}, 2, broken},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries, began := 0, time.Now()
				err := retry.Do(t.Context(), func() error {
					tries++
					if tries <= len(c.errs) {
						return c.errs[tries-1]
					}
					return nil
				})
				require.Equal(t, c.want, err)
				require.Equal(t, c.tries, tries)
				require.Less(t, time.Since(began), 7*time.Second)
			})
		})
	}
}

func TestTheContextEndsAPause(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := retry.Do(ctx, func() error {
		cancel()
		return likes.Errorf(likes.ErrUnavailable, "away")
	})
	require.ErrorIs(t, err, context.Canceled)
}
