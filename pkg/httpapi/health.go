package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Probe asks one dependency for a sign of life.
type Probe struct {
	// Name is what /readyz calls the dependency.
	Name string
	// Check returns nil if the dependency answers. It should honour its context.
	Check func(context.Context) error
}

const (
	// probeTimeout bounds one round of probes: balancers give up after a few
	// seconds themselves.
	probeTimeout = time.Second
	// probeFor is how long a round's result is reused, so that many balancers
	// together probe a store no more than one would.
	probeFor = time.Second
)

// Health answers /healthz and /readyz.
type Health struct {
	log    *slog.Logger
	probes []*probe

	mu    sync.Mutex // also makes callers share a round
	until time.Time
}

// probe is a dependency with its check that may still run.
type probe struct {
	Probe
	running chan error // of capacity 1; nil if no check runs
	err     error      // of the last round
}

// NewHealth returns the health of a process with these dependencies.
func NewHealth(log *slog.Logger, probes ...Probe) *Health {
	h := &Health{log: log}
	for _, p := range probes {
		h.probes = append(h.probes, &probe{Probe: p})
	}
	return h
}

// NewAdmin returns the mux of the admin listener with the health checks on it.
// The caller adds metrics and profiles.
func NewAdmin(h *Health) *http.ServeMux {
	mux := http.NewServeMux()
	h.register(mux)
	return mux
}

func (h *Health) register(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", h.live)
	mux.HandleFunc("GET /readyz", h.readyz)
}

// live says that the process answers. It asks nobody: a restart does not bring a
// database back.
func (h *Health) live(w http.ResponseWriter, _ *http.Request) {
	h.write(w, http.StatusOK, []byte(`{"status":"ok"}`))
}

// readyz answers 200 if every dependency does, else 503, those aside that the query
// excludes (as Kubernetes' /readyz?exclude=etcd does). It names who does not; why is
// in the log.
func (h *Health) readyz(w http.ResponseWriter, r *http.Request) {
	ready, answer := h.check(context.WithoutCancel(r.Context()), r.URL.Query()["exclude"])
	status := http.StatusOK
	if !ready {
		status = http.StatusServiceUnavailable
	}
	h.write(w, status, answer)
}

func (h *Health) write(w http.ResponseWriter, status int, body []byte) {
	head := w.Header()
	head["Content-Type"], head["Cache-Control"], head["X-Content-Type-Options"] = jsonType, noStore, noSniff
	w.WriteHeader(status)
	if _, err := w.Write(body); err != nil {
		h.log.Debug("health not sent", "error", err)
	}
}

// check returns the last round's result, or that of a new one if it is too old, and
// the answer. An excluded dependency is in the answer and does not count; a name that
// this process does not have excludes nothing.
func (h *Health) check(ctx context.Context, exclude []string) (ready bool, answer []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.round(ctx)
	ready = true
	list := []byte(`,"dependencies":{`)
	for i, p := range h.probes {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(appendString(list, p.Name), `:{"ok":`...)
		list = append(strconv.AppendBool(list, p.err == nil), '}')
		ready = ready && (p.err == nil || slices.Contains(exclude, p.Name))
	}
	answer = []byte(`{"status":"ready"`)
	if !ready {
		answer = []byte(`{"status":"not_ready"`)
	}
	return ready, append(append(answer, list...), "}}"...)
}

// round asks all dependencies at once, unless the last time is not long ago.
func (h *Health) round(ctx context.Context) {
	if time.Now().Before(h.until) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for _, p := range h.probes {
		wg.Go(func() { p.round(ctx, h.log) })
	}
	wg.Wait()
	h.until = time.Now().Add(probeFor)
}

var errSilent = errors.New("no answer in time")

// round runs the check once, or waits for one that hangs since an earlier round,
// so that a dependency that never answers costs one goroutine and not one a
// second.
func (p *probe) round(ctx context.Context, log *slog.Logger) {
	if p.running != nil {
		select {
		case <-p.running: //nolint:errcheck // that was then: this round asks anew
			p.running = nil
		default:
		}
	}
	if p.running == nil {
		done := make(chan error, 1)
		p.running = done
		go func() { done <- p.run(ctx) }()
	}
	was := p.err
	select {
	case p.err = <-p.running:
		p.running = nil
	case <-ctx.Done():
		p.err = errSilent
	}
	switch {
	case p.err != nil && was == nil:
		log.Warn("dependency does not answer", "dependency", p.Name, "error", p.err)
	case p.err == nil && was != nil:
		log.Info("dependency answers again", "dependency", p.Name)
	}
}

func (p *probe) run(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("probe panicked: %v", r)
		}
	}()
	return p.Check(ctx)
}
