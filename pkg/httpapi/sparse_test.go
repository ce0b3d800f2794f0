package httpapi

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/auth"
	"likectl/pkg/likes"
)

func TestLog_ManyFailuresOfOneKindAreOneLine(t *testing.T) {
	f := newFixture(t)
	fail := func(err error, times int) {
		f.service.fault = func(int) error { return err }
		for range times {
			f.do(f.request("POST", "/v1/like", `{"item_id":"1","item_type":"post"}`, f.token(1, auth.User)))
		}
	}
	began := time.Now()
	fail(likes.ErrUnavailable, 500)
	seconds := 1 + int(time.Since(began)/time.Second)
	lines := strings.Count(f.log.String(), "code=unavailable")
	require.Positive(t, lines)
	require.LessOrEqual(t, lines, seconds)

	fail(likes.ErrUncertain, 1)
	require.Contains(t, f.log.String(), "code=uncertain", "another kind is told at once")
	before := strings.Count(f.log.String(), "code=internal")
	fail(errors.New("a defect"), 3)
	require.Equal(t, before+3, strings.Count(f.log.String(), "code=internal"), "defects are all told")
}

func TestSparse_CountsWhatItLeavesOut(t *testing.T) {
	var q sparse
	now := time.Unix(1_800_000_000, 0)
	for i := range 10 {
		_, ok := q.allow(now.Add(time.Duration(i) * 99 * time.Millisecond))
		require.Equal(t, i == 0, ok)
	}
	skipped, ok := q.allow(now.Add(time.Second))
	require.True(t, ok)
	require.EqualValues(t, 9, skipped)
}
