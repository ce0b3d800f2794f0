package tiertest

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"likectl/pkg/likes"
)

// Kind is what a recorded call did.
type Kind string

// The recorded calls.
const (
	KindLike   Kind = "like"
	KindUnlike Kind = "unlike"
	KindHas    Kind = "has"
	KindCount  Kind = "count"
)

// open is the end of a call whose effect may still come.
const open = math.MaxInt64

// Event is one call and its answer. Reads that failed are not events.
type Event struct {
	Client int `json:"client"`
	Kind   Kind
	// Edge is the edge; for a count its user is 0.
	Edge likes.Edge
	// Call and Return are nanoseconds since the history began. The effect of a
	// write is between them, both included.
	Call, Return int64
	// Uncertain: the write may have taken effect, once, between Call and Return.
	Uncertain bool `json:",omitempty"`
	// Exact: Changed is the exact outcome of the write.
	Exact   bool `json:",omitempty"`
	Changed bool `json:",omitempty"`
	// Liked answers KindHas.
	Liked bool `json:",omitempty"`
	// N and Version answer KindCount.
	N       int64              `json:",omitempty"`
	Version likes.CountVersion `json:",omitzero"`
	// Beside: the count came with a write. Its version is that of the first
	// stored count that includes the write, which others may share.
	Beside bool `json:",omitempty"`
}

func (e Event) write() bool { return e.Kind == KindLike || e.Kind == KindUnlike }

// History records calls of any number of clients at once.
type History struct {
	began time.Time

	mu     sync.Mutex
	events []Event
	acked  int // writes answered as done
	// unresolved indexes uncertain writes that no barrier has closed.
	unresolved []int
	inFlight   int
}

// NewHistory returns an empty history that begins now.
func NewHistory() *History { return &History{began: time.Now()} }

// Now returns the history's time.
func (h *History) Now() int64 { return int64(time.Since(h.began)) }

// Begin marks a call as in flight and returns its beginning.
func (h *History) Begin() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inFlight++
	return h.Now()
}

// End records what one call answered: its events, whose Call is what Begin
// returned. A call without events had no effect and says nothing: a refused
// write, a failed read.
func (h *History) End(events ...*Event) {
	now := h.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inFlight--
	for _, e := range events {
		e.Return = now
		switch {
		case e.write() && e.Uncertain:
			e.Return = open
			h.unresolved = append(h.unresolved, len(h.events))
		case e.write():
			h.acked++
		}
		h.events = append(h.events, *e)
	}
}

// Barrier states that no uncertain write of these clients answered so far can
// still take effect: whatever could have carried it out is dead.
func (h *History) Barrier(of func(client int) bool) {
	now := h.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unresolved = slices.DeleteFunc(h.unresolved, func(i int) bool {
		closed := of(h.events[i].Client)
		if closed {
			h.events[i].Return = now
		}
		return closed
	})
}

// Load returns how many writes were acknowledged and how many calls are in
// flight now.
func (h *History) Load() (acked, inFlight int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.acked, h.inFlight
}

// Events returns all events by the beginning of their calls.
func (h *History) Events() []Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := slices.Clone(h.events)
	slices.SortStableFunc(all, func(a, b Event) int { return int(max(min(a.Call-b.Call, 1), -1)) })
	return all
}

// WriteFile keeps a history that failed its checks, one event a line, and
// returns the file's name.
func WriteFile(events []Event) (string, error) {
	f, err := os.CreateTemp("", "likectl-history-*.jsonl")
	if err != nil {
		return "", err
	}
	enc := json.NewEncoder(f)
	for _, e := range events {
		if err := enc.Encode(e); err != nil {
			return "", fmt.Errorf("write %s: %w", f.Name(), err)
		}
	}
	return f.Name(), f.Close()
}

// byEdge groups writes and memberships by edge.
func byEdge(events []Event) map[likes.Edge][]Event {
	m := make(map[likes.Edge][]Event)
	for _, e := range events {
		if e.Kind != KindCount {
			m[e.Edge] = append(m[e.Edge], e)
		}
	}
	return m
}
