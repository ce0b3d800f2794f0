package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"likectl/pkg/abuse"
	"likectl/pkg/auth"
	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/version"
	"likectl/pkg/visibility"
)

// Verifier says who a bearer token belongs to. Its errors are those of pkg/auth.
type Verifier interface {
	Verify(token string) (auth.Identity, error)
}

var _ Verifier = (*auth.Authority)(nil)

// Observer is told of every answered request. The route is a pattern, never a
// path, so the number of routes is bounded.
type Observer interface {
	Request(route string, status int, took time.Duration)
}

// Limits bound one request.
type Limits struct {
	// MaxBody is the largest body in bytes.
	MaxBody int64
	// RequestTimeout is the time for a request once its body has been read.
	RequestTimeout time.Duration
	// MinVersionWait is how long a read waits for the versions that its client
	// has seen, at most RequestTimeout.
	MinVersionWait time.Duration
}

// DefaultLimits returns the limits unless configured otherwise. 1 MiB holds the
// largest batch, 1000 operations of about 150 bytes, several times over.
func DefaultLimits() Limits {
	return Limits{MaxBody: 1 << 20, RequestTimeout: 5 * time.Second, MinVersionWait: 200 * time.Millisecond}
}

// Config is what the API is made of. Only Guard, Catalog, Observer, Abuse, OwnerOf, Tracer
// and UserHash may be nil.
type Config struct {
	Service likes.Service
	// Guard decides who may see what; nil: everybody everything.
	Guard *visibility.Guard
	// Catalog is what the guard's decisions are made from; without it there are no
	// routes that change them, and no user's block hides a liker.
	Catalog  store.Catalog
	Auth     Verifier
	Versions *version.Codec
	Types    likes.ItemTypes
	Health   *Health
	Limits   Limits
	Rates    Rates
	// Abuse guards against fake likes, which DeviceHeader helps it to tell apart;
	// OwnerOf tells it whose items are liked. Without OwnerOf no item has an owner.
	Abuse        *abuse.Guard
	DeviceHeader string
	OwnerOf      abuse.OwnerFunc
	CORS         CORS
	// Gzip: long answers are compressed for clients that accept it.
	Gzip     bool
	Observer Observer
	Tracer   trace.Tracer // of requests
	// UserHash is what the log calls a user: a keyed hash. Ids are never logged;
	// if nil, nothing is.
	UserHash func(likes.UserID) string
	Logger   *slog.Logger
}

// API is the handler of the public listener.
type API struct {
	cfg      Config
	contract likes.Contract
	mux      *http.ServeMux
	entry    http.Handler // the mux, behind CORS where it is allowed
	methods  []string     // of the routes
	zippers  zippers
	ids      requestIDs
	calls    sync.Pool          // of *call
	proxy    sync.Once          // its warning
	sparse   [len(table)]sparse // by the row of the error
	document document
}

var _ http.Handler = (*API)(nil)

// access says whose token a route needs.
type access uint8

const (
	// public routes take no token and ignore one.
	public access = iota
	// anyone's routes take a token or none; one that is sent must be good.
	anyone
	caller
	service
)

// route is one method of one path.
type route struct {
	method, path string
	access       access
	body         bool
	serve        func(context.Context, *call) error
}

// New returns the API, or ErrInvalid that names a limit out of range.
func New(cfg Config) (*API, error) {
	switch {
	case cfg.Limits.MaxBody < 1:
		return nil, likes.Errorf(likes.ErrInvalid, "max body %d, want at least 1 byte", cfg.Limits.MaxBody)
	case cfg.Limits.RequestTimeout <= 0:
		return nil, likes.Errorf(likes.ErrInvalid, "request timeout %v, want more than 0", cfg.Limits.RequestTimeout)
	case cfg.Limits.MinVersionWait <= 0 || cfg.Limits.MinVersionWait > cfg.Limits.RequestTimeout:
		return nil, likes.Errorf(likes.ErrInvalid, "min version wait %v, want more than 0 and at most the request timeout %v",
			cfg.Limits.MinVersionWait, cfg.Limits.RequestTimeout)
	}
	if err := cfg.CORS.Check(); err != nil {
		return nil, fmt.Errorf("cors: %w", err)
	}
	contract := cfg.Service.Contract()
	doc, err := newDocument(cfg.Types, contract)
	if err != nil {
		return nil, err
	}
	cfg.DeviceHeader = http.CanonicalHeaderKey(cfg.DeviceHeader)
	a := &API{cfg: cfg, contract: contract, mux: http.NewServeMux(), ids: newRequestIDs(), document: doc}
	a.calls.New = func() any { return &call{api: a} }
	routes := []route{
		{"POST", "/v1/like", caller, true, a.mutate(likes.Likes, likes.Set)},
		{"DELETE", "/v1/like", caller, true, a.mutate(likes.Likes, likes.Clear)},
		{"POST", "/v1/save", caller, true, a.mutate(likes.Saves, likes.Set)},
		{"DELETE", "/v1/save", caller, true, a.mutate(likes.Saves, likes.Clear)},
		{"POST", "/v1/view", anyone, true, a.tally(likes.Views)},
		{"POST", "/v1/share", caller, true, a.tally(likes.Shares)},
		{"GET", "/v1/count", anyone, false, a.count},
		{"GET", "/v1/counts", anyone, false, a.counts},
		{"POST", "/v1/counts", anyone, true, a.counts},
		{"GET", "/v1/has_liked", caller, false, a.hasLiked},
		{"POST", "/v1/has_liked", caller, true, a.hasLiked},
		{"GET", "/v1/likers", caller, false, a.likers},
		{"GET", "/v1/me/likes", caller, false, a.likedBy},
		{"POST", "/v1/likes:batch", service, true, a.batch},
		{"GET", "/openapi.json", public, false, a.openAPI},
	}
	if cfg.Catalog != nil {
		routes = append(routes, a.catalogRoutes()...)
	}
	a.register(routes)
	var devices []string
	if cfg.Abuse != nil {
		devices = []string{cfg.DeviceHeader}
	}
	a.entry = corsHandler(cfg.CORS, a.methods, http.HandlerFunc(a.known), devices...)
	return a, nil
}

// catalogRoutes are those that need a catalog.
func (a *API) catalogRoutes() []route {
	return []route{
		{"PUT", "/v1/items", service, true, a.putItem},
		{"DELETE", "/v1/items", service, true, a.deleteItem},
		{"PUT", "/v1/blocks", service, true, a.block(true)},
		{"DELETE", "/v1/blocks", service, true, a.block(false)},
		{"PUT", "/v1/follows", service, true, a.follow(true)},
		{"DELETE", "/v1/follows", service, true, a.follow(false)},
		{"GET", "/v1/users/{id}/totals", service, false, a.userTotals},
	}
}

// register adds the routes, a 405 for the other methods of their paths, the
// health checks and a 404 for all the rest.
func (a *API) register(routes []route) {
	allow := map[string][]string{}
	for _, r := range routes {
		pattern := r.method + " " + r.path
		a.mux.HandleFunc(pattern, func(w http.ResponseWriter, req *http.Request) { a.serve(w, req, pattern, &r) })
		allow[r.path] = append(allow[r.path], r.method)
		if r.method == http.MethodGet {
			allow[r.path] = append(allow[r.path], http.MethodHead)
		}
	}
	a.cfg.Health.register(a.mux)
	a.methods = slices.Compact(slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Values(allow))...))))
	allow["/healthz"] = []string{http.MethodGet, http.MethodHead}
	allow["/readyz"] = allow["/healthz"]
	for path, methods := range allow {
		wrong := refuse(&problemError{kind: errMethod, allow: strings.Join(methods, ", ")})
		a.mux.HandleFunc(path, func(w http.ResponseWriter, req *http.Request) { a.serve(w, req, "other "+path, wrong) })
	}
	a.mux.HandleFunc("/", a.notFound)
}

// refuse returns a route that answers an error.
func refuse(err error) *route {
	return &route{serve: func(context.Context, *call) error { return err }}
}

func (a *API) notFound(w http.ResponseWriter, r *http.Request) {
	a.serve(w, r, "other", refuse(errRoute))
}

// ServeHTTP answers a request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.entry.ServeHTTP(w, r) }

// known passes a request to its route. A path with empty or dotted segments is
// unknown: the mux would answer it with a redirect that no client of an API follows.
func (a *API) known(w http.ResponseWriter, r *http.Request) {
	if p := r.URL.Path; strings.Contains(p, "//") || strings.Contains(p, "/.") {
		a.notFound(w, r)
		return
	}
	a.mux.ServeHTTP(w, r)
}

// serve runs a request from its first check to the last byte of its answer.
func (a *API) serve(w http.ResponseWriter, r *http.Request, name string, rt *route) {
	start := time.Now()
	c, _ := a.calls.Get().(*call)
	c.begin(w, r, name)
	ctx := r.Context()
	var span trace.Span
	if a.cfg.Tracer != nil {
		ctx, span = a.startSpan(ctx, r, name)
	}
	defer func() {
		if p := recover(); p != nil {
			c.recovered(ctx, p)
		}
		if span != nil {
			c.endSpan(span)
		}
		if a.cfg.Observer != nil {
			a.cfg.Observer.Request(name, c.status, time.Since(start))
		}
		c.release()
	}()
	c.answer(ctx, a.run(ctx, c, rt))
}

// run checks what is common to all routes, in the order of cost: who calls, how
// often, what he sends, what he has seen. A token that is refused counts as a
// request of its address; nothing of a refused request's body is read.
func (a *API) run(ctx context.Context, c *call, rt *route) error {
	refused := c.authorise(rt.access)
	if err := c.takeRequest(ctx); err != nil {
		return err
	}
	if refused != nil {
		return refused
	}
	if rt.body {
		if c.r.URL.RawQuery != "" {
			return likes.Errorf(likes.ErrInvalid, "query: none is read here, everything belongs in the body")
		}
		if err := c.readBody(a.cfg.Limits.MaxBody); err != nil {
			return err
		}
	}
	// The time is the service's alone: how long a client may take to send its
	// body is the server's ReadTimeout.
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Limits.RequestTimeout)
	defer cancel()
	return rt.serve(ctx, c)
}
