package tiertest

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/auth"
	"likectl/pkg/httpapi"
	"likectl/pkg/likes"
	"likectl/pkg/memory"
	"likectl/pkg/store"
	"likectl/pkg/version"
	"likectl/pkg/visibility"
)

// sightAPI returns the API over the oracle with a catalog, and its authority.
func sightAPI(t *testing.T, m *memory.Service, catalog store.Catalog, registered bool) (http.Handler, *auth.Authority) {
	t.Helper()
	secret := make([]byte, auth.SecretSize)
	authority, err := auth.New(auth.Default(secret))
	require.NoError(t, err)
	versions, err := version.New(secret)
	require.NoError(t, err)
	guard, err := visibility.New(visibility.Config{Source: catalog, Registered: registered, Cache: time.Second, MaxEntries: 1 << 16})
	require.NoError(t, err)
	log := slog.New(slog.DiscardHandler)
	api, err := httpapi.New(httpapi.Config{
		Service: m, Guard: guard, Catalog: catalog, Auth: authority, Versions: versions, Types: likes.DefaultItemTypes(),
		Health: httpapi.NewHealth(log), Limits: httpapi.DefaultLimits(), Logger: log,
	})
	require.NoError(t, err)
	return api, authority
}

// broken is the oracle's catalog with a bug in it.
type broken struct {
	*memory.Service

	item   func(*store.ItemChange)
	facts  func(*visibility.Facts)
	totals func(*store.Totals)
	// blocked answers that there is no block between users.
	blocked bool
}

func (b *broken) PutItem(ctx context.Context, c store.ItemChange) (visibility.Item, bool, error) {
	if b.item != nil {
		b.item(&c)
	}
	return b.Service.PutItem(ctx, c)
}

func (b *broken) Facts(ctx context.Context, viewer likes.UserID, items []likes.Item, out []visibility.Facts) error {
	err := b.Service.Facts(ctx, viewer, items, out)
	for i := range out {
		if b.facts != nil {
			b.facts(&out[i])
		}
	}
	return err
}

func (b *broken) Totals(ctx context.Context, u likes.UserID) (store.Totals, error) {
	t, err := b.Service.Totals(ctx, u)
	if b.totals != nil {
		b.totals(&t)
	}
	return t, err
}

func (b *broken) Blocked(ctx context.Context, viewer likes.UserID, users []likes.UserID, out []bool) error {
	err := b.Service.Blocked(ctx, viewer, users, out)
	if b.blocked {
		clear(out)
	}
	return err
}

// The cases about who may see what fail for what they are about, and pass without a
// bug.
func TestPlantedSightBugsAreCaught(t *testing.T) {
	all := []int{11, 22, 23, 24, 37, 38, 41, 90, 91, 92, 94}
	header := func(name, value string) func(http.Handler, http.ResponseWriter, *http.Request) {
		return func(next http.Handler, w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(&rewriter{ResponseWriter: w, header: func(h http.Header, _ int) { h.Set(name, value) }}, r)
		}
	}
	for name, bug := range map[string]struct {
		catalog broken
		wrap    func(http.Handler, http.ResponseWriter, *http.Request)
		caught  []int
	}{
		"none":                         {},
		"blocks are ignored":           {catalog: broken{facts: func(f *visibility.Facts) { f.Blocked = false }}, caught: []int{90, 91, 92}},
		"likers ignores blocks":        {catalog: broken{blocked: true}, caught: []int{90}},
		"follows are ignored":          {catalog: broken{facts: func(f *visibility.Facts) { f.Follows = false }}, caught: []int{92}},
		"followers are all":            {catalog: broken{facts: func(f *visibility.Facts) { f.Follows = true }}, caught: []int{92}},
		"hidden counts are shown":      {catalog: broken{facts: func(f *visibility.Facts) { f.HideCounts = false }}, caught: []int{94}},
		"private is for followers":     {catalog: broken{facts: loosened}, caught: []int{92}},
		"deleted is private":           {catalog: broken{facts: undeleted}, caught: []int{23, 92}},
		"what is deleted stays so":     {catalog: broken{item: neverLive}, caught: []int{22, 23, 37}},
		"what is deleted is summed":    {catalog: broken{totals: func(s *store.Totals) { s.Received[likes.Likes] += 5 }}, caught: []int{22, 24, 38}},
		"a sum of likes is one off":    {catalog: broken{totals: func(s *store.Totals) { s.Given[likes.Likes]++ }}, caught: []int{11, 38}},
		"hidden counts are in the sum": {catalog: broken{totals: together}, caught: []int{24}},
		"a header tells the number":    {wrap: header("X-Popular", "1847"), caught: []int{94}},
		"personal answers are shared":  {wrap: header("Cache-Control", "public, s-maxage=1"), caught: []int{41, 94}},
		"no two refusals are alike": {wrap: func(next http.Handler, w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(&rewriter{ResponseWriter: w, header: func(h http.Header, status int) {
				if status == http.StatusNotFound && r.Method == http.MethodPost {
					h.Set("X-Reason", strconv.FormatInt(time.Now().UnixNano(), 36))
				}
			}}, r)
		}, caught: []int{91}},
	} {
		t.Run(name, func(t *testing.T) {
			m := memory.New()
			catalog := bug.catalog
			catalog.Service = m
			api, authority := sightAPI(t, m, &catalog, false)
			h := api
			if bug.wrap != nil {
				h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { bug.wrap(api, w, r) })
			}
			failed := httpFailures(t, h, authority, all...)
			require.Subset(t, failed, bug.caught)
			if bug.caught == nil {
				require.Empty(t, failed)
			}
		})
	}
}

func loosened(f *visibility.Facts) {
	if f.Level == visibility.Private {
		f.Level = visibility.Followers
	}
}

func undeleted(f *visibility.Facts) {
	if f.State == visibility.Deleted {
		f.State, f.Level = visibility.Live, visibility.Private
	}
}

func neverLive(c *store.ItemChange) {
	if c.State == visibility.Live {
		c.State = 0
	}
}

func together(s *store.Totals) { s.Received[likes.Likes] += s.ReceivedHidden[likes.Likes] }

// rewriter changes the headers of an answer just before they are sent.
type rewriter struct {
	http.ResponseWriter

	header func(h http.Header, status int)
}

func (r *rewriter) WriteHeader(status int) {
	r.header(r.Header(), status)
	r.ResponseWriter.WriteHeader(status)
}

// What tells items apart by the clock notices 50 µs.
func TestPlantedDelayIsCaught(t *testing.T) {
	const delay, pairs = 50 * time.Microsecond, 4000
	m := memory.New()
	api, authority := sightAPI(t, m, m, true)
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := strconv.ParseInt(r.URL.Query().Get("item_id"), 10, 64)
		facts := make([]visibility.Facts, 1)
		if err == nil && strings.HasPrefix(r.URL.Path, "/v1/count") {
			err = m.Facts(r.Context(), 1, []likes.Item{{Type: 1, ID: likes.ItemID(id)}}, facts)
		}
		if err == nil && facts[0].Known {
			for end := time.Now().Add(delay); time.Now().Before(end); {
			}
		}
		api.ServeHTTP(w, r)
	})
	got := map[string]float64{}
	for name, h := range map[string]http.Handler{"slow": slow, "even": api} {
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		mint := func(u likes.UserID, scope auth.Scope) string {
			token, err := authority.Mint(u, scope, time.Hour)
			require.NoError(t, err)
			return token
		}
		c := &webCase{T: t, web: newWeb(t, HTTPTarget{
			BaseURLs: []string{server.URL}, ServiceToken: mint(1, auth.Service),
			UserToken: func(u likes.UserID) string { return mint(u, auth.User) },
		})}
		got[name] = c.tellApart("count", "private", "unknown", pairs)
		t.Logf("%s: %.3f", name, got[name])
	}
	require.Greater(t, got["slow"], maxAccuracy)
	require.Greater(t, got["slow"], got["even"]+0.1)
}

func TestAccuracy(t *testing.T) {
	series := func(n int, f func(i int) time.Duration) []time.Duration {
		all := make([]time.Duration, n)
		for i := range all {
			all[i] = f(i)
		}
		return all
	}
	low := series(100, func(i int) time.Duration { return time.Duration(i%10 + 1) })
	high := series(100, func(i int) time.Duration { return time.Duration(i%10 + 11) })
	shifted := series(100, func(i int) time.Duration { return time.Duration(i%10 + 6) })
	require.InDelta(t, 1, accuracy(low, high), 0)
	require.InDelta(t, 1, accuracy(high, low), 0, "in either direction")
	require.InDelta(t, 0.5, accuracy(low, low), 0)
	require.InDelta(t, 0.75, accuracy(low, shifted), 0)
}
