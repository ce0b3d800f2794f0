package adminapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"likectl/pkg/reconcile"
	"likectl/pkg/store"
)

const (
	// heartbeat is how often a walk says where it is.
	heartbeat = time.Second
	// sendTimeout is how long a client may take to read a line.
	sendTimeout = 30 * time.Second
)

// reconcile walks and answers as it goes, one JSON object a line. A client that
// goes away ends the walk: nobody would learn of the rest.
func (h *Handler) reconcile(w http.ResponseWriter, r *http.Request) {
	var request reconcileRequest
	if !h.read(w, r, &request) {
		return
	}
	if request.All == (len(request.Keys) > 0) {
		h.refuse(w, http.StatusBadRequest, "want either all or keys")
		return
	}
	c := reconcile.Config{DryRun: request.DryRun, PerSecond: request.PerSecond, Keys: make([]store.Key, len(request.Keys))}
	for i, k := range request.Keys {
		c.Keys[i] = k.store()
	}
	if err := c.Validate(); err != nil {
		h.refuse(w, http.StatusBadRequest, "%v", err)
		return
	}
	select {
	case h.walking <- struct{}{}:
	default:
		h.refuse(w, http.StatusConflict, "a reconcile is running already; wait for it to end")
		return
	}
	c.RightAt = h.rightAt
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	events := make(chan event)
	walk, err := reconcile.New(h.config.Auditor, c, func(f reconcile.Found) error {
		if h.config.Drifted != nil {
			h.config.Drifted(f)
		}
		select {
		case events <- event{Found: newFound(f)}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil { // not after the validation above
		<-h.walking
		h.refuse(w, http.StatusBadRequest, "%v", err)
		return
	}
	go func() {
		defer close(events)
		sum, err := h.run(ctx, walk, c)
		<-h.walking // before the client learns of the end and may begin another
		select {
		case events <- event{Summary: &sum, Error: newFault(err)}:
		case <-ctx.Done():
		}
	}()
	h.stream(w, walk, events)
	cancel()
	for range events {
		// until the walk has ended
	}
}

// run walks, tells of the end, and remembers a walk that left all counters right.
func (h *Handler) run(ctx context.Context, walk *reconcile.Walk, c reconcile.Config) (reconcile.Summary, error) {
	began := time.Now().UTC()
	sum, err := walk.Run(ctx)
	if err == nil && len(c.Keys) == 0 && sum.Drifted == sum.Repaired {
		h.rightAt = began
	}
	if h.config.Reconciled != nil {
		h.config.Reconciled(c, sum, err)
	}
	return sum, err
}

// stream sends events and heartbeats until there are no more events or the
// client does not read them.
func (h *Handler) stream(w http.ResponseWriter, walk *reconcile.Walk, events <-chan event) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	// The server's timeouts are for short calls. Their only error is that the
	// connection has none.
	rc, enc := http.NewResponseController(w), json.NewEncoder(w)
	_ = rc.SetReadDeadline(time.Time{})
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		var e event
		select {
		case next, ok := <-events:
			if !ok {
				return
			}
			e = next
		case <-tick.C:
			checked, estimate := walk.Progress()
			e.Progress = &progress{checked, estimate}
		}
		_ = rc.SetWriteDeadline(time.Now().Add(sendTimeout))
		if err := enc.Encode(e); err != nil {
			return
		}
		if err := rc.Flush(); err != nil {
			return
		}
	}
}
