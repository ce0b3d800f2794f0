package adminapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"time"

	"likectl/pkg/auth"
	"likectl/pkg/erase"
	"likectl/pkg/hot"
	"likectl/pkg/likes"
	"likectl/pkg/reconcile"
	"likectl/pkg/store"
)

// Config is what the handler works on.
type Config struct {
	Service likes.Service
	Auditor store.Auditor
	Walker  store.Walker
	Hot     hot.Rates
	// Erasures are those of the store.
	Erasures erase.Registry
	// Types are the configured item types.
	Types map[string]int
	// Authorize returns nil for an administrator's request. An error that is
	// ErrForbidden gives 403, any other 401. See [AdminOnly].
	Authorize func(*http.Request) error
	Log       *slog.Logger

	// Drifted is told of every counter that a reconcile found different, and
	// Reconciled of every one that ended. Nil: nobody is told.
	Drifted    func(reconcile.Found)
	Reconciled func(reconcile.Config, reconcile.Summary, error)
}

// ErrForbidden says that the token is good but not an administrator's.
var ErrForbidden = errors.New("forbidden")

// AdminOnly authorizes requests with a token of scope admin.
func AdminOnly(a *auth.Authority) func(*http.Request) error {
	return func(r *http.Request) error {
		token, err := auth.Bearer(r.Header.Values("Authorization"))
		if err != nil {
			return err
		}
		id, err := a.Verify(token)
		if err != nil {
			return err
		}
		if id.Scope != auth.Admin {
			return fmt.Errorf("%w: the token has the scope %v, this call needs admin", ErrForbidden, id.Scope)
		}
		return nil
	}
}

// Handler answers the calls of the package's doc.
type Handler struct {
	config Config
	mux    *http.ServeMux
	// walking holds a value while a reconcile runs: two at a time would only
	// double the load.
	walking chan struct{}
	// rightAt is when the last walk began that left no counter different; zero if
	// there was none in this process. It belongs to who is walking.
	rightAt time.Time
}

var _ http.Handler = (*Handler)(nil)

// New returns the handler, to be mounted at /admin/v1/.
func New(c Config) *Handler {
	h := &Handler{config: c, mux: http.NewServeMux(), walking: make(chan struct{}, 1)}
	h.mux.HandleFunc("GET "+pathTypes, h.types)
	h.mux.HandleFunc("POST "+pathReplay, h.replay)
	h.mux.HandleFunc("POST "+pathReconcile, h.reconcile)
	h.mux.HandleFunc("POST "+pathWalk, h.walk)
	h.mux.HandleFunc("POST "+pathLikedBy, h.likedBy)
	h.mux.HandleFunc("POST "+pathEstimate, h.estimate)
	h.mux.HandleFunc("GET "+pathHot, h.hot)
	h.handleErasures()
	return h
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if !loopback(r.Host) {
		h.refuse(w, http.StatusForbidden, "the host %.100q is not a loopback address", r.Host)
		return
	}
	if err := h.config.Authorize(r); err != nil {
		status := http.StatusUnauthorized
		if errors.Is(err, ErrForbidden) {
			status = http.StatusForbidden
		} else {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		h.refuse(w, status, "%v", err)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// LocalOnly refuses requests whose Host is not a loopback address: a page in an
// operator's browser could otherwise reach the listener under a name of its own
// that it lets point here (DNS rebinding).
func LocalOnly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !loopback(r.Host) {
			http.Error(w, fmt.Sprintf("the host %.100q is not a loopback address", r.Host), http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// loopback says whether a Host header names this machine.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else if n := len(host); n > 2 && host[0] == '[' && host[n-1] == ']' {
		host = host[1 : n-1]
	}
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

func (h *Handler) types(w http.ResponseWriter, _ *http.Request) {
	h.answer(w, http.StatusOK, "application/json", typesAnswer{h.config.Types})
}

func (h *Handler) replay(w http.ResponseWriter, r *http.Request) {
	var request replayRequest
	if !h.read(w, r, &request) {
		return
	}
	if err := likes.CheckApply(len(request.Replays)); err != nil {
		h.refuse(w, http.StatusBadRequest, "%v", err)
		return
	}
	ms := make([]likes.Mutation, len(request.Replays))
	for i := range ms {
		var err error
		if ms[i], err = request.Replays[i].mutation(); err != nil {
			h.refuse(w, http.StatusBadRequest, "replays[%d]: %v; nothing was applied", i, err)
			return
		}
	}
	answer := replayAnswer{Results: make([]replayResult, len(ms))}
	for i, result := range h.config.Service.Apply(r.Context(), ms) {
		if result.Err != nil {
			answer.Results[i].Error = newFault(result.Err)
			continue
		}
		answer.Results[i].Outcome = result.Outcome.String()
	}
	h.answer(w, http.StatusOK, "application/json", answer)
}

// read reads a request's one JSON value strictly. JSON as the content type is
// demanded since browsers ask before they send it to another site.
func (h *Handler) read(w http.ResponseWriter, r *http.Request, into any) bool {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		h.refuse(w, http.StatusUnsupportedMediaType, "the body must be application/json")
		return false
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return true
		}
		err = errors.Join(errors.New("more than one JSON value"), err)
	}
	status := http.StatusBadRequest
	var long *http.MaxBytesError
	if errors.As(err, &long) {
		status = http.StatusRequestEntityTooLarge
	}
	h.refuse(w, status, "read the request: %v; nothing was applied", err)
	return false
}

func (h *Handler) refuse(w http.ResponseWriter, status int, format string, args ...any) {
	h.answer(w, status, "application/problem+json", problem{http.StatusText(status), status, fmt.Sprintf(format, args...)})
}

func (h *Handler) answer(w http.ResponseWriter, status int, kind string, body any) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		h.config.Log.Warn("admin answer not sent", "error", err)
	}
}
