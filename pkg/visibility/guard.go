package visibility

import (
	"context"
	"hash/maphash"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"likectl/pkg/likes"
)

// Source reads what decides, from the service's own tables.
type Source interface {
	// Facts reads what decides for the viewer, 0 for nobody, about 1 to
	// [likes.MaxRead] items, by position.
	Facts(ctx context.Context, viewer likes.UserID, items []likes.Item, out []Facts) error
	// Restricts says whether there is anything that keeps anybody from an item.
	Restricts(ctx context.Context) (bool, error)
}

// Config is what a guard decides from. Source or Authorizer is set.
type Config struct {
	Source     Source
	Authorizer *Authorizer
	// Registered: items that the source does not know are for nobody.
	Registered bool
	// Cache is for how long a decision is remembered, and so how long a change
	// made through another process may take to be seen in this one.
	Cache time.Duration
	// MaxEntries is how many decisions are remembered, about 150 bytes each.
	MaxEntries int
}

// Guard answers who may see what, from memory where it can. It fails closed: what
// cannot be found out is an error, never "visible", and never "not there".
//
// While nothing restricts anybody, which is looked up once in Config.Cache, a
// question costs one atomic load. Otherwise every answer is remembered by viewer
// and item, visible or not, known or not: what is not to be seen costs exactly
// what does not exist.
type Guard struct {
	// ask decides afresh.
	ask func(ctx context.Context, viewer likes.UserID, items []likes.Item, out []Decision) error
	// restricts is nil if ask must always be asked.
	restricts func(context.Context) (bool, error)
	keep      time.Duration
	start     time.Time // the zero of the instants below, in nanoseconds

	// until is the instant until which it is known that nothing restricts anybody;
	// negative, that something does; 0: to be looked up.
	until  atomic.Int64
	mu     sync.Mutex // of until and rows together
	rows   uint64     // changes of this process that may have changed that
	flight singleflight.Group

	cache *lru.Cache[key, entry]
	seed  maphash.Seed
	// A change counts up the stripe of its item or users, and what was remembered
	// or being read before counts no longer. A stripe is shared by chance only.
	items, viewers [stripes]atomic.Uint32
}

const stripes = 1024

type key struct {
	viewer likes.UserID
	item   likes.Item
}

type entry struct {
	Decision

	until         int64
	items, viewer uint32 // of the stripes, before the facts were read
}

// New returns a guard, or ErrInvalid that names a limit out of range.
func New(cfg Config) (*Guard, error) {
	switch {
	case (cfg.Source == nil) == (cfg.Authorizer == nil):
		return nil, likes.Errorf(likes.ErrInvalid, "want either a source or an authorizer")
	case cfg.Cache <= 0:
		return nil, likes.Errorf(likes.ErrInvalid, "cache %v, want more than 0", cfg.Cache)
	case cfg.MaxEntries < 1:
		return nil, likes.Errorf(likes.ErrInvalid, "max entries %d, want at least 1", cfg.MaxEntries)
	}
	cache, err := lru.New[key, entry](cfg.MaxEntries)
	if err != nil {
		return nil, err
	}
	g := &Guard{keep: cfg.Cache, start: time.Now(), cache: cache, seed: maphash.MakeSeed()}
	switch {
	case cfg.Authorizer != nil:
		g.ask = cfg.Authorizer.Decide
	default:
		g.ask = asking(cfg.Source, cfg.Registered)
		if !cfg.Registered {
			g.restricts = cfg.Source.Restricts
		}
	}
	return g, nil
}

// asking decides from a source.
func asking(source Source, registered bool) func(context.Context, likes.UserID, []likes.Item, []Decision) error {
	return func(ctx context.Context, viewer likes.UserID, items []likes.Item, out []Decision) error {
		facts := make([]Facts, len(items))
		if err := source.Facts(ctx, max(viewer, Anonymous), items, facts); err != nil {
			return err
		}
		for i, f := range facts {
			out[i] = Decide(f, viewer, registered)
		}
		return nil
	}
}

func (g *Guard) now() int64 { return int64(time.Since(g.start)) }

// Open says that nothing restricts anybody, as far as is known without asking.
// A nil guard is always open.
func (g *Guard) Open() bool {
	if g == nil {
		return true
	}
	until := g.until.Load()
	return until > 0 && g.now() < until
}

// One decides about one item. Its error is ErrUnavailable.
func (g *Guard) One(ctx context.Context, viewer likes.UserID, item likes.Item) (Decision, error) {
	if g.Open() {
		return open, nil
	}
	ds, err := g.Look(ctx, viewer, []likes.Item{item})
	if err != nil {
		return Decision{}, err
	}
	return ds.At(0), nil
}

// Decisions are by position; nil if all are visible and shown.
type Decisions []Decision

// At returns the i-th.
func (ds Decisions) At(i int) Decision {
	if ds == nil {
		return open
	}
	return ds[i]
}

// Look decides about items for one viewer. Its error is ErrUnavailable.
func (g *Guard) Look(ctx context.Context, viewer likes.UserID, items []likes.Item) (Decisions, error) {
	restricted, err := g.restricted(ctx)
	if err != nil || !restricted {
		return nil, err
	}
	out := make(Decisions, len(items))
	var missing []int
	for i, item := range items {
		e, ok := g.cache.Get(key{viewer, item})
		if ok && g.holds(e, viewer, item) {
			out[i] = e.Decision
		} else {
			missing = append(missing, i)
		}
	}
	for len(missing) > 0 {
		n := min(len(missing), likes.MaxRead)
		if err := g.read(ctx, viewer, items, missing[:n], out); err != nil {
			return nil, err
		}
		missing = missing[n:]
	}
	return out, nil
}

// read asks about the items at some positions and remembers the answers.
func (g *Guard) read(ctx context.Context, viewer likes.UserID, items []likes.Item, at []int, out Decisions) error {
	asked, found, entries := make([]likes.Item, len(at)), make([]Decision, len(at)), make([]entry, len(at))
	until := g.now() + int64(g.keep)
	for j, i := range at {
		asked[j] = items[i]
		entries[j] = entry{until: until, items: g.itemStripe(items[i]).Load(), viewer: g.viewerStripe(viewer).Load()}
	}
	if err := g.ask(ctx, viewer, asked, found); err != nil {
		return unavailable(err)
	}
	for j, i := range at {
		out[i] = found[j]
		entries[j].Decision = found[j]
		g.cache.Add(key{viewer, items[i]}, entries[j])
	}
	return nil
}

// holds says whether what was remembered still counts.
func (g *Guard) holds(e entry, viewer likes.UserID, item likes.Item) bool {
	return g.now() < e.until && e.items == g.itemStripe(item).Load() && e.viewer == g.viewerStripe(viewer).Load()
}

func (g *Guard) itemStripe(item likes.Item) *atomic.Uint32 {
	return &g.items[maphash.Comparable(g.seed, item)%stripes]
}

func (g *Guard) viewerStripe(viewer likes.UserID) *atomic.Uint32 {
	return &g.viewers[maphash.Comparable(g.seed, viewer)%stripes]
}

// asking for many viewers has this many calls in flight at once.
const parallel = 4

// LookEach decides about items, each for a viewer of its own. Its error is
// ErrUnavailable.
func (g *Guard) LookEach(ctx context.Context, viewers []likes.UserID, items []likes.Item) (Decisions, error) {
	restricted, err := g.restricted(ctx)
	if err != nil || !restricted {
		return nil, err
	}
	at := make(map[likes.UserID][]int)
	for i, viewer := range viewers {
		at[viewer] = append(at[viewer], i)
	}
	out := make(Decisions, len(items))
	calls, ctx := errgroup.WithContext(ctx)
	calls.SetLimit(parallel)
	for viewer, positions := range at {
		calls.Go(func() error {
			asked := make([]likes.Item, len(positions))
			for j, i := range positions {
				asked[j] = items[i]
			}
			found, err := g.Look(ctx, viewer, asked)
			for j, i := range positions {
				if err == nil {
					out[i] = found.At(j)
				}
			}
			return err
		})
	}
	if err := calls.Wait(); err != nil {
		return nil, err
	}
	return out, nil
}

// restricted says whether anything restricts anybody, from memory while that is
// fresh. Whoever needs it afresh at the same time shares one look-up.
func (g *Guard) restricted(ctx context.Context) (bool, error) {
	switch {
	case g.Open():
		return false, nil
	case g.restricts == nil:
		return true, nil
	}
	if until := g.until.Load(); until < 0 && g.now() < -until {
		return true, nil
	}
	g.mu.Lock()
	rows := g.rows
	g.mu.Unlock()
	// By the number of changes: who comes after a change shares no look-up of
	// before. The look-up outlives a caller who gives up, others wait for it.
	shared := g.flight.DoChan(strconv.FormatUint(rows, 10), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
		defer cancel()
		until := g.now() + int64(g.keep)
		restricted, err := g.restricts(ctx)
		if err != nil {
			return true, err
		}
		if restricted {
			until = -until
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.rows == rows {
			g.until.Store(until)
		}
		return restricted, nil
	})
	select {
	case r := <-shared:
		restricted, ok := r.Val.(bool)
		if r.Err != nil || !ok {
			return true, unavailable(r.Err)
		}
		return restricted, nil
	case <-ctx.Done():
		return true, unavailable(ctx.Err())
	}
}

// lookTimeout bounds the one look-up that all share; a store has bounds of its own.
const lookTimeout = 5 * time.Second

// ForgetItem says that an item, or who is blocked from it, was changed.
func (g *Guard) ForgetItem(item likes.Item) {
	if g == nil {
		return
	}
	g.itemStripe(item).Add(1)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rows++
	g.until.Store(0)
}

// ForgetUsers says that what is between users was changed.
func (g *Guard) ForgetUsers(users ...likes.UserID) {
	if g == nil {
		return
	}
	for _, u := range users {
		g.viewerStripe(u).Add(1)
	}
}

// unavailable is what every failure to find out becomes: nothing was applied, and
// a later try can help.
func unavailable(err error) error {
	return likes.Errorf(likes.ErrUnavailable, "who may see the item: %w", err)
}
