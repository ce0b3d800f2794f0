package tiertest

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/auth"
	apiclient "likectl/pkg/client"
	"likectl/pkg/httpapi"
	"likectl/pkg/likes"
	"likectl/pkg/version"
)

// Remote returns the harness with the API between the suites and the instances:
// each has a listener of its own, and the suites work through pkg/client. scope
// says with whose tokens: a service's, or each user's own.
func Remote(h Harness, scope auth.Scope) Harness {
	return Harness{Open: func(tb testing.TB, instances int) *Cluster {
		near := h.Open(tb, instances)
		r := &remote{tb: tb, scope: scope, servers: make([]*httptest.Server, instances)}
		secret := bytes.Repeat([]byte{7}, auth.SecretSize)
		var err error
		r.auth, err = auth.New(auth.Default(secret))
		require.NoError(tb, err)
		r.versions, err = version.New(secret)
		require.NoError(tb, err)
		far := &Cluster{
			Settle: near.Settle, Auditor: near.Auditor, Drift: near.Drift, Remote: true,
			Faults: append([]Fault{{Name: "connections cut", Start: r.cut}}, near.Faults...),
		}
		for i, s := range near.Services {
			far.Services = append(far.Services, r.serve(i, s))
		}
		tb.Cleanup(func() {
			for _, s := range r.servers {
				s.Close()
			}
		})
		if near.Restart != nil {
			far.Restart = func(ctx context.Context, i int) (likes.Service, error) {
				r.servers[i].Close()
				s, err := near.Restart(ctx, i)
				if err != nil {
					return nil, err
				}
				near.Services[i] = s
				return r.serve(i, s), nil
			}
		}
		return far
	}}
}

// remote is the API in front of the instances of a cluster.
type remote struct {
	tb       testing.TB
	scope    auth.Scope
	auth     *auth.Authority
	versions *version.Codec

	servers  []*httptest.Server
	cutting  atomic.Bool
	requests atomic.Int64
}

// serve puts the API in front of an instance and returns its client.
func (r *remote) serve(i int, s likes.Service) likes.Service {
	log := slog.New(slog.DiscardHandler)
	api, err := httpapi.New(httpapi.Config{
		Service: s, Auth: r.auth, Versions: r.versions, Types: likes.DefaultItemTypes(),
		Health: httpapi.NewHealth(log), Limits: httpapi.DefaultLimits(), Logger: log,
	})
	require.NoError(r.tb, err)
	server := httptest.NewUnstartedServer(r.cuttable(api))
	server.Config.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	server.Start()
	r.servers[i] = server
	c, err := apiclient.Open(r.tb.Context(), apiclient.Default(server.URL, r.token(1, auth.Service)))
	require.NoError(r.tb, err)
	r.tb.Cleanup(c.Close)
	if r.scope == auth.User {
		return &everyone{r: r, c: c}
	}
	return c
}

func (r *remote) token(u likes.UserID, scope auth.Scope) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return r.auth.Mint(u, scope, time.Hour) }
}

// cut breaks connections: of three requests one is answered, one is lost on its
// way in and one is carried out while its answer is lost.
func (r *remote) cut(context.Context) (func(context.Context) error, error) {
	r.cutting.Store(true)
	return func(context.Context) error { r.cutting.Store(false); return nil }, nil
}

// cuttable is the API behind connections that cut breaks.
func (r *remote) cuttable(api http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if !r.cutting.Load() {
			api.ServeHTTP(w, req)
			return
		}
		switch r.requests.Add(1) % 3 {
		case 0:
			api.ServeHTTP(w, req)
			return
		case 1:
			api.ServeHTTP(httptest.NewRecorder(), req)
		}
		panic(http.ErrAbortHandler) // net/http closes the connection
	}
}

// everyone is all users at once: what concerns one is asked with that user's token.
type everyone struct {
	r *remote
	c *apiclient.Client
}

var _ likes.Service = (*everyone)(nil)

// of returns the client of a user; of nobody and of impossible users, somebody's.
func (s *everyone) of(u likes.UserID) *apiclient.Client {
	if u <= 0 {
		u = 1
	}
	c, err := s.c.As(u, s.r.token(u, auth.User))
	require.NoError(s.r.tb, err)
	return c
}

// Apply implements [likes.Service].
func (s *everyone) Apply(ctx context.Context, ms []likes.Mutation) []likes.Result {
	if err := likes.CheckApply(len(ms)); err != nil {
		return s.of(1).Apply(ctx, ms)
	}
	out := make([]likes.Result, len(ms))
	for i, m := range ms {
		out[i] = s.of(m.Edge.User).Apply(ctx, []likes.Mutation{m})[0]
	}
	return out
}

// Counts implements [likes.Service].
func (s *everyone) Counts(ctx context.Context, c likes.Counter, items []likes.Item, seen []likes.Version) []likes.Count {
	return s.of(1).Counts(ctx, c, items, seen)
}

// Has implements [likes.Service].
func (s *everyone) Has(ctx context.Context, c likes.Counter, user likes.UserID, items []likes.Item, seen []likes.Version) []likes.Membership {
	return s.of(user).Has(ctx, c, user, items, seen)
}

// Likers implements [likes.Service].
func (s *everyone) Likers(ctx context.Context, c likes.Counter, item likes.Item, cur likes.Cursor, limit int) ([]likes.Member, likes.Cursor, error) {
	return s.of(1).Likers(ctx, c, item, cur, limit)
}

// LikedBy implements [likes.Service].
func (s *everyone) LikedBy(ctx context.Context, c likes.Counter, user likes.UserID, cur likes.Cursor, limit int) ([]likes.Member, likes.Cursor, error) {
	return s.of(user).LikedBy(ctx, c, user, cur, limit)
}

// Contract implements [likes.Service].
func (s *everyone) Contract() likes.Contract { return s.c.Contract() }
