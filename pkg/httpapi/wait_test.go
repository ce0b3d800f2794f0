package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/auth"
	"likectl/pkg/likes"
	"likectl/pkg/memory"
)

// lagging is a service whose reads of an item show nothing before an instant: a
// read with a token of the item gets ErrNotYet until then, as the contract has it.
type lagging struct {
	likes.Service
	mu      sync.Mutex
	visible map[likes.ItemID]time.Time
	asked   [][]likes.Item // every question, with its items
}

func (s *lagging) notYet(c likes.Counter, items []likes.Item, seen []likes.Version) []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, items)
	errs := make([]error, len(items))
	for i, item := range items {
		for _, v := range seen {
			if v.Edge.Item == item && v.Edge.Counter == c && time.Now().Before(s.visible[item.ID]) {
				errs[i] = likes.Errorf(likes.ErrNotYet, "%v lags", item)
			}
		}
	}
	return errs
}

func (s *lagging) Counts(ctx context.Context, c likes.Counter, items []likes.Item, seen []likes.Version) []likes.Count {
	out := s.Service.Counts(ctx, c, items, seen)
	for i, err := range s.notYet(c, items, seen) {
		if err != nil {
			out[i] = likes.Count{Err: err}
		}
	}
	return out
}

func (s *lagging) Has(ctx context.Context, c likes.Counter, u likes.UserID, items []likes.Item, seen []likes.Version) []likes.Membership {
	out := s.Service.Has(ctx, c, u, items, seen)
	for i, err := range s.notYet(c, items, seen) {
		if err != nil {
			out[i] = likes.Membership{Err: err}
		}
	}
	return out
}

// behind returns the API over a service that shows an item's writes so long after
// now, and the tokens of user 1's likes of items 1 to 3.
func behind(t *testing.T, lag map[likes.ItemID]time.Duration) (f *fixture, s *lagging, tokens []string) {
	s = &lagging{Service: memory.New(), visible: map[likes.ItemID]time.Time{}}
	f = newFixture(t, func(c *Config) { c.Service = s })
	for _, item := range []string{"1", "2", "3"} {
		tokens = append(tokens, f.like(http.MethodPost, 1, item).header.Get("Like-Version"))
	}
	for item, d := range lag {
		s.visible[item] = time.Now().Add(d)
	}
	return f, s, tokens
}

const (
	countOf1   = "/v1/count?item_id=1&item_type=post"
	countsOf12 = "/v1/counts?item_ids=1,2,3&item_type=post"
	hasOf12    = "/v1/has_liked?item_ids=1,2,3&item_type=post"
)

func TestMinVersion_AReadWaitsUntilTheVersionIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, lag := range []time.Duration{time.Millisecond, 70 * time.Millisecond, 190 * time.Millisecond} {
			f, _, tokens := behind(t, map[likes.ItemID]time.Duration{1: lag})
			began := time.Now()
			a := f.do(f.request("GET", countOf1, "", "", "Like-Min-Version", tokens[0]))
			took := time.Since(began)
			require.Equal(t, 200, a.status, a.raw)
			require.JSONEq(t, `{"likes":1}`, jsonOf(t, a.body["counts"]))
			require.GreaterOrEqual(t, took, lag)
			require.Less(t, took, lag+maxPause, "the pauses are short")
		}
	})
}

func TestMinVersion_AReadGivesUpAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s, tokens := behind(t, map[likes.ItemID]time.Duration{1: time.Hour})
		began := time.Now()
		// Several counters share the time.
		a := f.do(f.request("GET", countOf1+"&counter_types=likes,saves", "", "", "Like-Min-Version", tokens[0]))
		require.Equal(t, 503, a.status)
		require.Equal(t, "version_not_reached", a.body["error"])
		require.Equal(t, "1", a.header.Get("Retry-After"))
		require.Equal(t, f.api.cfg.Limits.MinVersionWait, time.Since(began))
		require.LessOrEqual(t, len(s.asked), 13, "it does not ask all the time")
	})
}

func TestMinVersion_OnlyWhatIsNotThereIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, target := range []string{countsOf12, hasOf12} {
			f, s, tokens := behind(t, map[likes.ItemID]time.Duration{2: 20 * time.Millisecond, 3: time.Hour})
			a := f.do(f.request("GET", target, "", f.token(1, auth.User), "Like-Min-Version", tokens[0]+","+tokens[1], "Like-Min-Version", tokens[2]))
			require.Equal(t, 200, a.status, a.raw)
			require.Len(t, s.asked[0], 3)
			last := len(s.asked) - 1
			require.Equal(t, []likes.Item{{Type: 1, ID: 2}, {Type: 1, ID: 3}}, s.asked[1])
			require.Equal(t, []likes.Item{{Type: 1, ID: 3}}, s.asked[last])
			errs := as[map[string]any](t, a.body["errors"])
			require.Len(t, errs, 1, "two are there, in their places: %s", a.raw)
			switch target {
			case countsOf12:
				require.JSONEq(t, `{"post:1":{"likes":1},"post:2":{"likes":1}}`, jsonOf(t, a.body["counts"]))
				require.Contains(t, jsonOf(t, errs["post:3"]), "version_not_reached")
			default:
				require.JSONEq(t, `{"1":true,"2":true}`, jsonOf(t, a.body["liked"]))
				require.Contains(t, jsonOf(t, errs["3"]), "version_not_reached")
			}
		}
	})
}

func TestMinVersion_NobodyElseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s, tokens := behind(t, map[likes.ItemID]time.Duration{1: time.Hour})
		began := time.Now()
		user := f.token(1, auth.User)
		for _, req := range []*http.Request{
			f.request("GET", countOf1, "", ""),                                                               // no token
			f.request("GET", countOf1, "", "", "Like-Min-Version", tokens[1]),                                // another item's
			f.request("GET", hasOf12, "", user, "Like-Min-Version", tokens[1]),                               //
			f.request("GET", countOf1, "", "", "Like-Version", tokens[0]),                                    // of writes
			f.request("GET", "/v1/likers?item_id=1&item_type=post", "", user, "Like-Min-Version", tokens[0]), // edges are not asked by version
		} {
			require.Equal(t, 200, f.do(req).status)
		}
		require.Len(t, s.asked, 4, "once each")
		require.Zero(t, time.Since(began))
	})
}

func TestMinVersion_OtherErrorsAreNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		token := f.like(http.MethodPost, 1, "1").header.Get("Like-Version")
		f.service.fault = func(int) error { return likes.ErrUnavailable }
		began, calls := time.Now(), f.service.calls
		require.Equal(t, 503, f.do(f.request("GET", countOf1, "", "", "Like-Min-Version", token)).status)
		require.Equal(t, calls+1, f.service.calls)
		require.Zero(t, time.Since(began))
	})
}

func TestMinVersion_AClientThatIsGoneIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _, tokens := behind(t, map[likes.ItemID]time.Duration{1: time.Hour})
		ctx, leave := context.WithCancel(t.Context())
		began := time.Now()
		time.AfterFunc(50*time.Millisecond, leave)
		rec := httptest.NewRecorder()
		f.api.ServeHTTP(rec, f.request("GET", countOf1, "", "", "Like-Min-Version", tokens[0]).WithContext(ctx))
		require.Equal(t, 503, rec.Code)
		require.Equal(t, 50*time.Millisecond, time.Since(began))
	})
}

func TestMinVersion_TheWaitIsWithinTheRequestsTime(t *testing.T) {
	cfg := newFixture(t).api.cfg
	for _, wait := range []time.Duration{0, -1, cfg.Limits.RequestTimeout + 1} {
		cfg.Limits.MinVersionWait = wait
		_, err := New(cfg)
		require.ErrorIs(t, err, likes.ErrInvalid)
		require.ErrorContains(t, err, "min version wait")
	}
}

// jsonOf returns a part of an answer as JSON.
func jsonOf(tb testing.TB, v any) string {
	tb.Helper()
	b, err := json.Marshal(v)
	require.NoError(tb, err)
	return string(b)
}
