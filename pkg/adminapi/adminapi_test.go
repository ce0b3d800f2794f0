package adminapi_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"likectl/pkg/adminapi"
	"likectl/pkg/auth"
	"likectl/pkg/likes"
	"likectl/pkg/memory"
	"likectl/pkg/reconcile"
	"likectl/pkg/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// auditor is a store with a number of counters, some wrong.
type auditor struct {
	counters int
	wrong    map[store.Key]store.Drift
	slow     time.Duration
	err      error
	audits   atomic.Int64
}

func (a *auditor) Audit(ctx context.Context, after store.Key, limit int) (store.Audit, error) {
	a.audits.Add(1)
	select {
	case <-ctx.Done():
		return store.Audit{}, ctx.Err()
	case <-time.After(a.slow):
	}
	if a.err != nil {
		return store.Audit{}, a.err
	}
	var out store.Audit
	for id := int(after.Item.ID) + 1; id <= a.counters && out.Checked < limit; id++ {
		out.Checked++
		out.Next = likeKey(int64(id))
		if d, ok := a.wrong[out.Next]; ok {
			out.Drifts = append(out.Drifts, d)
		}
	}
	if out.Checked < limit {
		out.Next = store.Key{}
	}
	return out, nil
}

func (a *auditor) AuditItem(_ context.Context, keys []store.Key) (store.Audit, error) {
	out := store.Audit{Checked: len(keys)}
	for _, k := range keys {
		if d, ok := a.wrong[k]; ok {
			out.Drifts = append(out.Drifts, d)
		}
	}
	return out, nil
}

func (a *auditor) Repair(_ context.Context, k store.Key) (store.Drift, error) {
	d := a.wrong[k]
	delete(a.wrong, k)
	return d, nil
}

func (a *auditor) Estimate(context.Context) (int64, error) { return int64(a.counters), nil }

func likeKey(id int64) store.Key {
	return store.Key{Counter: likes.Likes, Item: likes.Item{Type: 1, ID: likes.ItemID(id)}}
}

func drift(id int64) store.Drift {
	return store.Drift{Key: likeKey(id), Stored: 9, Edges: 4, Missing: true}
}

// serve runs the handler in a server, with short timeouts where there are walks, and
// returns a client.
func serve(t *testing.T, s likes.Service, a store.Auditor) (*adminapi.Client, *httptest.Server, *auth.Authority) {
	t.Helper()
	authority, err := auth.New(auth.Default(make([]byte, auth.SecretSize)))
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(adminapi.New(adminapi.Config{
		Service: s, Auditor: a, Types: map[string]int{"post": 1, "clip": 40},
		Authorize: adminapi.AdminOnly(authority), Log: slog.New(slog.DiscardHandler),
	}))
	if a != nil { // walks must outlive them; a large batch on a busy machine need not
		server.Config.ReadTimeout, server.Config.WriteTimeout = 100*time.Millisecond, 100*time.Millisecond
	}
	server.Start()
	t.Cleanup(server.Close)
	c, err := adminapi.NewClient(server.URL+"/", func() (string, error) { return authority.Mint(1, auth.Admin, time.Minute) })
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c, server, authority
}

func like(user likes.UserID, clock likes.Clock) likes.Mutation {
	return likes.Mutation{Op: likes.Set, Edge: likes.Edge{Counter: likes.Likes, Item: likeKey(1).Item, User: user}, Fixed: clock}
}

func TestReplaysArriveAsTheyWereSent(t *testing.T) {
	s := memory.New()
	c, _, _ := serve(t, s, nil)
	when := time.Date(2011, 2, 3, 4, 5, 6, 789000, time.UTC)
	big := like(1<<63-1, likes.MaxClock)
	big.Edge.Item = likes.Item{Type: 32767, ID: 1<<63 - 1}
	big.Edge.Counter = likes.Saves
	dated := like(2, 1)
	dated.LikedAt = when
	unlike := like(3, 5)
	unlike.Op = likes.Clear
	ms := []likes.Mutation{big, dated, like(3, 4), unlike, like(3, 5)}
	out := c.Apply(t.Context(), ms)
	var outcomes []likes.Outcome
	for i, r := range out {
		require.NoError(t, r.Err)
		require.Equal(t, likes.Version{Edge: ms[i].Edge, Clock: ms[i].Fixed}, r.Version)
		outcomes = append(outcomes, r.Outcome)
	}
	require.Equal(t, []likes.Outcome{likes.Changed, likes.Changed, likes.Changed, likes.Changed, likes.Superseded}, outcomes)
	has := s.Has(t.Context(), likes.Saves, big.Edge.User, []likes.Item{big.Edge.Item}, nil)[0]
	require.Equal(t, likes.Membership{Liked: true, Clock: likes.MaxClock, LikedAt: likes.MaxClock.Time()}, has)
	require.Equal(t, when, s.Has(t.Context(), likes.Likes, 2, []likes.Item{likeKey(1).Item}, nil)[0].LikedAt)
}

func TestAFullBatchFits(t *testing.T) {
	c, _, _ := serve(t, memory.New(), nil)
	ms := make([]likes.Mutation, likes.MaxApply)
	for i := range ms {
		ms[i] = like(1<<63-1-likes.UserID(i), likes.MaxClock)
		ms[i].Edge.Item = likes.Item{Type: 32767, ID: 1<<63 - 1}
		ms[i].LikedAt = time.Now()
	}
	for _, r := range c.Apply(t.Context(), ms) {
		require.NoError(t, r.Err)
		require.Equal(t, likes.Changed, r.Outcome)
	}
	for _, r := range c.Apply(t.Context(), slices.Concat(ms, ms[:1])) {
		require.ErrorIs(t, r.Err, likes.ErrInvalid)
	}
}

// refusing gives every mutation another kind of error.
type refusing struct{ likes.Service }

func (refusing) Apply(_ context.Context, ms []likes.Mutation) []likes.Result {
	out := make([]likes.Result, len(ms))
	for i, kind := range []error{likes.ErrOverloaded, likes.ErrUnavailable, likes.ErrUncertain, likes.ErrFenced, errors.New("disk on fire")} {
		out[i].Err = likes.Errorf(kind, "no %d", i)
	}
	return out
}

func TestErrorsArriveAsTheirKind(t *testing.T) {
	c, _, _ := serve(t, refusing{}, nil)
	out := c.Apply(t.Context(), []likes.Mutation{like(1, 1), like(2, 1), like(3, 1), like(4, 1), like(5, 1)})
	require.ErrorIs(t, out[0].Err, likes.ErrOverloaded)
	require.EqualError(t, out[0].Err, "no 0")
	require.ErrorIs(t, out[1].Err, likes.ErrUnavailable)
	require.ErrorIs(t, out[2].Err, likes.ErrUncertain)
	require.ErrorIs(t, out[3].Err, likes.ErrFenced)
	require.EqualError(t, out[4].Err, "no 4")
}

func TestIssuedMutationsAreRefused(t *testing.T) {
	s := memory.New()
	c, _, _ := serve(t, s, nil)
	out := c.Apply(t.Context(), []likes.Mutation{like(1, 9), like(2, 0)})
	require.ErrorIs(t, out[0].Err, likes.ErrInvalid)
	require.ErrorContains(t, out[0].Err, "replays[1]: clock is missing")
	require.False(t, s.Has(t.Context(), likes.Likes, 1, []likes.Item{likeKey(1).Item}, nil)[0].Liked, "all or nothing")
}

func TestItemTypes(t *testing.T) {
	c, _, _ := serve(t, memory.New(), nil)
	types, err := c.ItemTypes(t.Context())
	require.NoError(t, err)
	clip, ok := types.Type("clip")
	require.True(t, ok)
	require.EqualValues(t, 40, clip)
	_, ok = types.Type("reel")
	require.False(t, ok)
}

func TestWhoMayCall(t *testing.T) {
	s := memory.New()
	_, server, authority := serve(t, s, &auditor{})
	mint := func(scope auth.Scope) string {
		token, err := authority.Mint(1, scope, time.Minute)
		require.NoError(t, err)
		return "Bearer " + token
	}
	const good = `{"replays":[{"op":"like","counter":1,"item_type":1,"item_id":"1","user_id":"1","clock":"4096"}]}`
	json := "application/json"
	for _, c := range []struct {
		name, host, token, kind, method, path, body string
		want                                        int
	}{
		{"no token", "localhost", "", json, "POST", "/admin/v1/replay", good, 401},
		{"a user's token", "localhost", mint(auth.User), json, "POST", "/admin/v1/replay", good, 403},
		{"a service's token", "localhost", mint(auth.Service), json, "POST", "/admin/v1/replay", good, 403},
		{"a forged token", "localhost", mint(auth.Admin) + "x", json, "POST", "/admin/v1/replay", good, 401},
		{"another host", "evil.example:9090", mint(auth.Admin), json, "POST", "/admin/v1/replay", good, 403},
		{"a host that begins like one", "127.0.0.1.evil.example", mint(auth.Admin), json, "POST", "/admin/v1/replay", good, 403},
		{"an outside address", "10.0.0.1:9090", mint(auth.Admin), json, "POST", "/admin/v1/reconcile", good, 403},
		{"a form", "localhost", mint(auth.Admin), "text/plain", "POST", "/admin/v1/replay", good, 415},
		{"GET", "localhost", mint(auth.Admin), json, "GET", "/admin/v1/replay", "", 405},
		{"unknown field", "localhost", mint(auth.Admin), json, "POST", "/admin/v1/replay", `{"replays":[],"x":1}`, 400},
		{"empty", "localhost", mint(auth.Admin), json, "POST", "/admin/v1/replay", `{"replays":[]}`, 400},
		{"no body", "localhost", mint(auth.Admin), json, "POST", "/admin/v1/replay", ``, 400},
		{"two values", "localhost", mint(auth.Admin), json, "POST", "/admin/v1/replay", good + good, 400},
		{"too long", "localhost", mint(auth.Admin), json, "POST", "/admin/v1/replay", `{"replays":[` + strings.Repeat(" ", 2<<20), 413},
		{"neither all nor keys", "localhost", mint(auth.Admin), json, "POST", "/admin/v1/reconcile", `{"dry_run":true,"per_second":1}`, 400},
		{"no pace", "localhost", mint(auth.Admin), json, "POST", "/admin/v1/reconcile", `{"all":true,"per_second":0}`, 400},
		{"bad key", "localhost", mint(auth.Admin), json, "POST", "/admin/v1/reconcile", `{"keys":[{"counter":2,"item_type":1,"item_id":"1"}],"per_second":1}`, 400},
		{"good", "[::1]:9090", mint(auth.Admin), json + "; charset=utf-8", "POST", "/admin/v1/replay", good, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), c.method, server.URL+c.path, strings.NewReader(c.body))
			require.NoError(t, err)
			r.Host = c.host
			r.Header.Set("Content-Type", c.kind)
			if c.token != "" {
				r.Header.Set("Authorization", c.token)
			}
			response, err := http.DefaultClient.Do(r)
			require.NoError(t, err)
			defer func() { require.NoError(t, response.Body.Close()) }()
			text, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			require.Equal(t, c.want, response.StatusCode, "%s", text)
			liked := s.Has(t.Context(), likes.Likes, 1, []likes.Item{likeKey(1).Item}, nil)[0].Liked
			require.Equal(t, c.want == 200, liked, "refused calls change nothing")
		})
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestReconcileStreamsWhatItFinds(t *testing.T) {
	// Slow enough to outlive the server's timeouts and to need a heartbeat.
	a := &auditor{counters: 1200, slow: 500 * time.Millisecond, wrong: map[store.Key]store.Drift{
		likeKey(7): drift(7), likeKey(1100): drift(1100),
	}}
	c, _, _ := serve(t, nil, a)
	config := reconcile.Config{DryRun: true, PerSecond: reconcile.MaxPerSecond}
	for _, config.DryRun = range []bool{true, false} {
		var got []reconcile.Found
		var at, estimate int64
		sum, err := c.Reconcile(t.Context(), config, func(n, e int64) { at, estimate = n, e },
			func(f reconcile.Found) error { got = append(got, f); return nil })
		require.NoError(t, err)
		require.Equal(t, []reconcile.Found{
			{Drift: drift(7), Repaired: !config.DryRun},
			{Drift: drift(1100), Repaired: !config.DryRun},
		}, got)
		require.EqualValues(t, 1200, sum.Checked)
		require.EqualValues(t, 2, sum.Drifted)
		require.EqualValues(t, 10, sum.Magnitude)
		require.Positive(t, at)
		require.EqualValues(t, 1200, estimate)
	}
	require.Empty(t, a.wrong)
}

func TestReconcileOfNamedCounters(t *testing.T) {
	a := &auditor{wrong: map[store.Key]store.Drift{likeKey(7): drift(7), likeKey(8): drift(8)}}
	c, _, _ := serve(t, nil, a)
	sum, err := c.Reconcile(t.Context(), reconcile.Config{Keys: []store.Key{likeKey(8)}, PerSecond: 1},
		func(int64, int64) {}, func(reconcile.Found) error { return nil })
	require.NoError(t, err)
	require.Equal(t, reconcile.Summary{Checked: 1, Drifted: 1, Repaired: 1, Magnitude: 5}, sum)
	require.Len(t, a.wrong, 1)
}

func TestAFailedWalkIsAnError(t *testing.T) {
	c, _, _ := serve(t, nil, &auditor{err: likes.Errorf(likes.ErrFenced, "another epoch")})
	_, err := c.Reconcile(t.Context(), reconcile.Config{PerSecond: 1}, nil, nil)
	require.ErrorIs(t, err, likes.ErrFenced)
	require.ErrorContains(t, err, "another epoch")
}

func TestOneWalkAtATimeAndItEndsWithItsClient(t *testing.T) {
	a := &auditor{counters: 1 << 40}
	c, _, _ := serve(t, nil, a)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	slow := reconcile.Config{PerSecond: 1000}
	go func() {
		_, err := c.Reconcile(ctx, slow, func(int64, int64) {}, nil)
		failed <- err
	}()
	require.Eventually(t, func() bool { return a.audits.Load() > 0 }, 5*time.Second, time.Millisecond)
	_, err := c.Reconcile(t.Context(), slow, nil, nil)
	require.ErrorContains(t, err, "a reconcile is running already")
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
	slow.Keys = []store.Key{likeKey(1)}
	require.Eventually(t, func() bool {
		_, err := c.Reconcile(t.Context(), slow, nil, nil)
		return err == nil
	}, 5*time.Second, 10*time.Millisecond, "the walk has ended with its client")
}

func TestABrokenConnectionIsNotTheEndOfAWalk(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"progress":{"checked":5}}`+"\n")
	}))
	defer server.Close()
	c := client(t, server.URL)
	sum, err := c.Reconcile(t.Context(), reconcile.Config{PerSecond: 1}, func(int64, int64) {}, nil)
	require.ErrorContains(t, err, "the walk's end was not reported")
	require.EqualValues(t, 5, sum.Checked)
}

func client(t *testing.T, url string) *adminapi.Client {
	t.Helper()
	c, err := adminapi.NewClient(url, func() (string, error) { return "token", nil })
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestTheClientKnowsWhatMayHaveHappened(t *testing.T) {
	apply := func(url string) error { return client(t, url).Apply(t.Context(), []likes.Mutation{like(1, 1)})[0].Err }
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	closed := "http://" + l.Addr().String()
	require.NoError(t, l.Close())
	require.ErrorIs(t, apply(closed), likes.ErrUnavailable)

	hangUp := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer hangUp.Close()
	require.ErrorIs(t, apply(hangUp.URL), likes.ErrUncertain)

	for status, want := range map[int]error{429: likes.ErrOverloaded, 503: likes.ErrUnavailable, 502: likes.ErrUncertain, 400: likes.ErrInvalid} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		require.ErrorIs(t, apply(server.URL), want, status)
		server.Close()
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	require.ErrorContains(t, apply(other.URL), "no likectl admin listener answers there")
	strange := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	defer strange.Close()
	require.ErrorIs(t, apply(strange.URL), likes.ErrUncertain)

	_, server, _ := serve(t, memory.New(), nil)
	require.ErrorContains(t, apply(server.URL), "name the server's with --data")
}

func TestAddresses(t *testing.T) {
	for _, bad := range []string{"", "localhost:9090", "127.0.0.1:9090", "ftp://localhost", "http://", "http://localhost/x", "http://localhost?x"} {
		_, err := adminapi.NewClient(bad, nil)
		require.ErrorIs(t, err, likes.ErrInvalid, bad)
	}
}
