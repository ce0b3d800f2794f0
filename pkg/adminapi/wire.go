// Package adminapi is the part of the admin listener through which commands work
// on a running server, and the client of it.
//
//	GET  /admin/v1/item_types  the configured item types and their numbers
//	POST /admin/v1/replay      apply a batch of replays
//	POST /admin/v1/reconcile   compare counters with edges; answers as it goes
//	POST /admin/v1/walk        a page of all liked edges, in key order
//	POST /admin/v1/liked_by    a page of one user's
//	POST /admin/v1/estimate    about how many there are
//	GET  /admin/v1/hot         the items that are written most often; n=1 to 100
//	POST /admin/v1/erasures/…  begin, step, record, unfinished, remains, receipt and
//	                           verify: see [likectl/pkg/erase.Registry]
//
// Every call needs an admin token. It must also name a loopback host: a page
// in an administrator's browser can make a name of its own point to 127.0.0.1
// (DNS rebinding), but then the Host header tells.
package adminapi

import (
	"errors"
	"time"

	"likectl/pkg/likes"
	"likectl/pkg/reconcile"
	"likectl/pkg/store"
)

const (
	pathTypes     = "/admin/v1/item_types"
	pathReplay    = "/admin/v1/replay"
	pathReconcile = "/admin/v1/reconcile"
	pathWalk      = "/admin/v1/walk"
	pathLikedBy   = "/admin/v1/liked_by"
	pathEstimate  = "/admin/v1/estimate"
	pathHot       = "/admin/v1/hot"
	pathErasures  = "/admin/v1/erasures/"

	// maxBody bounds requests: likes.MaxApply replays of about 170 bytes, twice
	// over, and then some.
	maxBody = 1 << 20
)

// problem is the answer to a call that failed as a whole (RFC 9457).
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

// fault is an error on the wire.
type fault struct {
	Kind   string `json:"kind"`
	Detail string `json:"detail"`
}

// kinds are the errors that cross the wire as what they are.
func kinds() []error {
	return []error{
		likes.ErrInvalid, likes.ErrNotFound, likes.ErrErased, likes.ErrOverloaded, likes.ErrUnavailable,
		likes.ErrUncertain, likes.ErrFenced, likes.ErrNotYet,
	}
}

func newFault(err error) *fault {
	if err == nil {
		return nil
	}
	for _, kind := range kinds() {
		if errors.Is(err, kind) {
			return &fault{kind.Error(), err.Error()}
		}
	}
	return &fault{"internal", err.Error()}
}

func (f *fault) err() error {
	if f == nil {
		return nil
	}
	for _, kind := range kinds() {
		if kind.Error() == f.Kind {
			return likes.Errorf(kind, "%s", f.Detail)
		}
	}
	return errors.New(f.Detail)
}

type typesAnswer struct {
	Types map[string]int `json:"item_types"`
}

// replay is a mutation on the wire. 64-bit numbers are strings, as everywhere.
type replay struct {
	Op      string        `json:"op"`
	Counter likes.Counter `json:"counter"`
	Type    int16         `json:"item_type"`
	Item    int64         `json:"item_id,string"`
	User    int64         `json:"user_id,string"`
	Clock   int64         `json:"clock,string"`
	// LikedAt is in microseconds since 1970; absent: at the clock.
	LikedAt *int64 `json:"liked_at,string,omitempty"`
}

type replayRequest struct {
	Replays []replay `json:"replays"`
}

type replayResult struct {
	Outcome string `json:"outcome,omitempty"`
	Error   *fault `json:"error,omitempty"`
}

type replayAnswer struct {
	Results []replayResult `json:"results"`
}

func newReplay(m likes.Mutation) replay {
	r := replay{
		Op: m.Op.String(), Counter: m.Edge.Counter, Type: int16(m.Edge.Item.Type), Item: int64(m.Edge.Item.ID),
		User: int64(m.Edge.User), Clock: int64(m.Fixed),
	}
	if !m.LikedAt.IsZero() {
		us := m.LikedAt.UnixMicro()
		r.LikedAt = &us
	}
	return r
}

// mutation returns what the replay says, or ErrInvalid.
func (r *replay) mutation() (likes.Mutation, error) {
	m := likes.Mutation{Fixed: likes.Clock(r.Clock), Edge: likes.Edge{
		Counter: r.Counter, User: likes.UserID(r.User),
		Item: likes.Item{Type: likes.ItemType(r.Type), ID: likes.ItemID(r.Item)},
	}}
	for _, op := range []likes.Op{likes.Set, likes.Clear} {
		if op.String() == r.Op {
			m.Op = op
		}
	}
	if r.LikedAt != nil {
		m.LikedAt = time.UnixMicro(*r.LikedAt).UTC()
	}
	if m.Op == 0 {
		return m, likes.Errorf(likes.ErrInvalid, "op %.20q is unknown, want like or unlike", r.Op)
	}
	if m.Fixed == 0 {
		return m, likes.Errorf(likes.ErrInvalid, "clock is missing: only replays are taken here")
	}
	return m, m.Validate()
}

// outcome returns the outcome of that name, 0 if there is none.
func outcome(name string) likes.Outcome {
	for _, o := range []likes.Outcome{likes.Changed, likes.Unchanged, likes.Accepted, likes.Superseded} {
		if o.String() == name {
			return o
		}
	}
	return 0
}

// key is a store.Key on the wire.
type key struct {
	Counter likes.Counter `json:"counter"`
	Type    int16         `json:"item_type"`
	Item    int64         `json:"item_id,string"`
}

func newKey(k store.Key) key { return key{k.Counter, int16(k.Item.Type), int64(k.Item.ID)} }

func (k key) store() store.Key {
	return store.Key{Counter: k.Counter, Item: likes.Item{Type: likes.ItemType(k.Type), ID: likes.ItemID(k.Item)}}
}

// reconcileRequest names the counters one by one or asks for all.
type reconcileRequest struct {
	All       bool  `json:"all,omitempty"`
	Keys      []key `json:"keys,omitempty"`
	DryRun    bool  `json:"dry_run"`
	PerSecond int   `json:"per_second"`
}

// event is one line of the answer to a reconcile; one member is set, in the
// last line Summary, with an error if the walk did not reach its end.
type event struct {
	Progress *progress          `json:"progress,omitempty"`
	Found    *found             `json:"found,omitempty"`
	Summary  *reconcile.Summary `json:"summary,omitempty"`
	Error    *fault             `json:"error,omitempty"`
}

type progress struct {
	Checked  int64 `json:"checked"`
	Estimate int64 `json:"estimate"`
}

type found struct {
	key
	Stored   int64 `json:"stored"`
	Edges    int64 `json:"edges"`
	Missing  bool  `json:"missing"`
	Repaired bool  `json:"repaired"`

	RightAt time.Time `json:"right_at,omitzero"`
}

func newFound(f reconcile.Found) *found {
	return &found{newKey(f.Key), f.Stored, f.Edges, f.Missing, f.Repaired, f.RightAt}
}

func (f *found) found() reconcile.Found {
	d := store.Drift{Key: f.store(), Stored: f.Stored, Edges: f.Edges, Missing: f.Missing}
	return reconcile.Found{Drift: d, Repaired: f.Repaired, RightAt: f.RightAt}
}
