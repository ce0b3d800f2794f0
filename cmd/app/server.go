package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"likectl/pkg/abuse"
	"likectl/pkg/adminapi"
	"likectl/pkg/auth"
	"likectl/pkg/config"
	"likectl/pkg/erase"
	"likectl/pkg/hot"
	"likectl/pkg/httpapi"
	"likectl/pkg/lifecycle"
	"likectl/pkg/likes"
	"likectl/pkg/telemetry"
	"likectl/pkg/version"
	"likectl/pkg/visibility"
	"likectl/tiers/tier1"
)

// Server is a tier behind its two listeners.
type Server struct {
	cfg    config.Config
	log    *slog.Logger
	tier   *Tier
	hot    *hot.Tracker
	tokens *auth.Authority
	guard  *abuse.Guard // nil: none
	tracer trace.Tracer // nil: no traces
	api    net.Listener
	admin  net.Listener

	opened lifecycle.Stack
	failed chan error // a listener ended by itself
}

// Open opens the tier and both listeners. Requests are answered from then on.
// With adopt, the secret here becomes the one of all instances on the store.
func Open(ctx context.Context, cfg config.Config, log *slog.Logger, adopt bool) (s *Server, err error) {
	s = &Server{cfg: cfg, log: log, failed: make(chan error, 2)}
	opened := &s.opened // returning an error sets s to nil before the deferred call
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.Close(context.WithoutCancel(ctx), log))
		}
	}()
	sources, err := keySources(cfg)
	if err != nil {
		return nil, err
	}
	outside, err := openAuthorizer(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	if outside != nil {
		s.opened.Push("authorizer", outside.Close)
	}
	metrics := telemetry.New()
	if s.guard, err = openGuard(ctx, cfg, metrics, log); err != nil {
		return nil, err
	}
	if s.guard != nil {
		s.opened.Push("guard against abuse", s.guard.Close)
	}
	if s.hot, err = newHot(cfg, metrics); err != nil {
		return nil, err
	}
	hooks := tier1.Hooks{Flushed: metrics.Flushed, Forgot: metrics.Forgot, Wrote: s.hot.Wrote, Answered: metrics.Answered}
	traces, err := s.openTraces(ctx)
	if err != nil {
		return nil, err
	}
	if traces != nil {
		hooks.Waited, s.tracer = traces.Waited, traces.Tracer()
	}
	s.tier, err = OpenTier(ctx, cfg, log, hooks)
	if err != nil {
		return nil, err
	}
	s.opened.Push("tier", s.tier.Close)
	if err := s.tier.LoadSecret(ctx, cfg, adopt); err != nil {
		return nil, err
	}
	metrics.Gauge("likectl_queued_operations", "Operations that wait for a transaction.", func() float64 { return float64(s.tier.Queued()) })
	s.tokens, err = auth.Open(ctx, authConfig(cfg, s.tier.Secret, cfg.Auth.Cache), auth.Keys{
		Sources: sources, FileEvery: cfg.Auth.FileRefresh, URLEvery: cfg.Auth.JWKSRefresh, Log: log, Read: metrics.KeysRead,
	})
	if err != nil {
		return nil, err
	}
	s.opened.Push("token keys", s.tokens.Close)
	health := httpapi.NewHealth(log, s.tier.Probes...)
	showMode(ctx, health, metrics)
	erasures, err := s.tier.Erasures(cfg)
	if err != nil {
		return nil, err
	}
	s.resumeErasures(ctx, erasures)
	admin := s.adminHandler(health, metrics, erasures)
	if s.admin, err = s.listen(ctx, "admin listener", cfg.AdminListen, adminConnections, admin); err != nil {
		return nil, err
	}
	guard, err := guard(cfg, s.tier.Catalog, outside)
	if err != nil {
		return nil, err
	}
	api, err := s.apiHandler(health, metrics, guard)
	if err != nil {
		return nil, err
	}
	if s.api, err = s.listen(ctx, "API listener", cfg.Listen, cfg.HTTP.MaxConnections, api); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) apiHandler(health *httpapi.Health, metrics *telemetry.Metrics, guard *visibility.Guard) (http.Handler, error) {
	types, err := s.cfg.ItemTypes()
	if err != nil {
		return nil, err
	}
	versions, err := version.New(s.tier.Secret)
	if err != nil {
		return nil, err
	}
	rates, err := rates(s.cfg.Limits, metrics)
	if err != nil {
		return nil, err
	}
	return httpapi.New(httpapi.Config{
		Service: s.tier.Service, Guard: guard, Catalog: s.tier.Catalog, Auth: s.tokens, Versions: versions, Types: types, Health: health,
		Limits: httpapi.Limits{MaxBody: s.cfg.HTTP.MaxBody, RequestTimeout: s.cfg.HTTP.RequestTimeout, MinVersionWait: s.cfg.HTTP.MinVersionWait},
		Rates:  rates,
		Abuse:  s.guard, DeviceHeader: s.cfg.Abuse.DeviceHeader, OwnerOf: ownersFrom(s.tier.Catalog),
		CORS:     httpapi.CORS{Origins: s.cfg.HTTP.CORS.Origins, MaxAge: s.cfg.HTTP.CORS.MaxAge},
		Gzip:     s.cfg.HTTP.Gzip,
		Observer: metrics, Tracer: s.tracer, UserHash: s.tier.UserHash, Logger: s.log,
	})
}

func (s *Server) adminHandler(health *httpapi.Health, metrics *telemetry.Metrics, erasures erase.Registry) http.Handler {
	mux := httpapi.NewAdmin(health)
	mux.HandleFunc("GET /{$}", adminIndex)
	mux.Handle("/admin/v1/", adminapi.New(adminapi.Config{
		Service: s.tier.Service, Auditor: s.tier.Auditor, Walker: s.tier.Walker, Hot: s.hot, Erasures: erasures, Types: s.cfg.Items.Types,
		Authorize: adminapi.AdminOnly(s.tokens), Log: s.log,
		Drifted: metrics.Drifted, Reconciled: metrics.Reconciled,
	}))
	mux.Handle("GET /metrics", metrics.Handler())
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return adminapi.LocalOnly(mux)
}

// adminIndex lists what there is on the admin listener.
func adminIndex(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, `likectl: the admin listener

/healthz               the process is alive
/readyz                every backend answers
/metrics               for Prometheus
/debug/pprof/          profiles
/admin/v1/item_types   for likectl, with an admin token: item types,
/admin/v1/replay       import,
/admin/v1/reconcile    reconcile,
/admin/v1/walk         export,
/admin/v1/hot          the items that are liked most often
/admin/v1/erasures/    erase, purge and merge-users
`) // a client that is gone needs no list
}

// adminConnections is enough for a scraper, a profile and a few operators.
const adminConnections = 64

// listen serves a handler on an address until the server closes.
func (s *Server) listen(ctx context.Context, name, address string, maxConns int, h http.Handler) (net.Listener, error) {
	c := s.cfg.HTTP
	server, err := httpapi.NewServer(h, httpapi.ServerConfig{
		ReadHeaderTimeout: c.ReadHeaderTimeout, ReadTimeout: c.ReadTimeout, WriteTimeout: c.WriteTimeout,
		IdleTimeout: c.IdleTimeout, MaxHeader: c.MaxHeader, MaxConns: maxConns,
	}, s.log)
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; is another likectl running? choose another address with --listen and --admin-listen", name, err)
	}
	go func() {
		if err := server.Serve(l); err != nil {
			s.failed <- err
		}
	}()
	s.opened.Push(name, server.Shutdown)
	return l, nil
}

// Addr returns the address of the API.
func (s *Server) Addr() string { return s.api.Addr().String() }

// AdminAddr returns the address of the admin listener.
func (s *Server) AdminAddr() string { return s.admin.Addr().String() }

// Serve waits until the context ends or a listener fails, then stops accepting,
// answers what is in flight, and closes everything.
func (s *Server) Serve(ctx context.Context) error {
	var err error
	select {
	case <-ctx.Done():
		s.log.Info("stopping: answering what is in flight", "at_most", s.cfg.Stop)
	case err = <-s.failed:
	}
	// The context that asked to stop has ended; stopping gets its own.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Stop)
	defer cancel()
	err = errors.Join(err, s.opened.Close(ctx, s.log))
	if err == nil {
		s.log.Info("stopped: everything that was answered is committed")
	}
	return err
}

// bannerTTL is how long the banner's token is good: for trying things out.
const bannerTTL = time.Hour

// Banner says what runs and how to try it.
//
// On a terminal the example has a token. Elsewhere what is printed is kept, so it has
// the command that makes one, with whole paths, and works when pasted as well.
func (s *Server) Banner(w io.Writer, terminal bool) error {
	c := s.tier.Service.Contract()
	token, err := s.exampleToken(terminal)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, `likectl tier %d: %s
  data      %s
  promise   %s
  secret    %s/secret signs the tokens: likectl token --user ID --data %s
  API       http://%s
  admin     http://%s (metrics, profiles)

  try it, as user 1 for an hour:

  curl -X POST http://%s/v1/like -H 'Content-Type: application/json' -H "Authorization: Bearer %s" -d '{"item_id":"1","item_type":"%s"}'

`, c.Tier, c.Name, s.tier.Backend, promise(c), s.cfg.Data, s.cfg.Data, s.Addr(), s.admin.Addr(), s.Addr(), token, s.itemType())
	return err
}

// exampleToken returns a token of user 1, or the command that makes one.
func (s *Server) exampleToken(terminal bool) (string, error) {
	if terminal {
		return s.tokens.Mint(1, auth.User, bannerTTL)
	}
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	data, err := filepath.Abs(s.cfg.Data)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("$(%s token --user 1 --ttl %v --data %s)", quoted(program), bannerTTL, quoted(data)), nil
}

// quoted makes a word of a shell of a path.
func quoted(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }

// Announce logs what the banner says to people, without a token.
func (s *Server) Announce() {
	c := s.tier.Service.Contract()
	s.log.Info("listening", "api", s.Addr(), "admin", s.admin.Addr().String(), "tier", c.Tier, "backend", s.tier.Backend)
}

// itemType is a configured item type for the example, the one with the least
// number.
func (s *Server) itemType() string {
	types := s.cfg.Items.Types
	return slices.MinFunc(slices.Collect(maps.Keys(types)), func(a, b string) int { return types[a] - types[b] })
}

// promise is a contract in a sentence.
func promise(c likes.Contract) string {
	text := "an answered like is " + c.Ack.String() + " to disk"
	if c.CountEqualsEdges {
		return text + ", counts equal the likes at every instant"
	}
	return fmt.Sprintf("%s, counts lag at most %v", text, c.CountStaleness)
}
