// Package export writes liked edges. CSV and JSONL are in the form that package
// ingest reads, so that an export imported into an empty store gives the same
// counts, the same edges, and the same beginnings of likes, to the microsecond.
// Parquet holds the same for analysis.
//
// It is safe while likes come in. [store.Walker] says what it may miss then:
// nothing that was liked all the time. Each page is a snapshot; all of them
// together are not, so an edge that changes during the export is in it or not.
// To have the end of a moving store, export once more and import both: what is
// in the files twice changes nothing.
package export

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"

	"likectl/pkg/likes"
	"likectl/pkg/retry"
	"likectl/pkg/store"
)

// Config says what is exported, and how.
type Config struct {
	// Counter leaves out the edges of other counters; 0: of all counters.
	Counter likes.Counter
	// User leaves out the edges of other users; 0: of all users.
	User   likes.UserID
	Format Format
	// Types name the item types; a type without a name ends the export, since
	// the file could not be imported.
	Types likes.ItemTypes
	// Pseudonyms stand in place of user ids; nil: the ids are written.
	Pseudonyms *Pseudonyms
}

// Summary is what was written.
type Summary struct {
	// Edges is the number of lines, and ByCounter the same by counter.
	Edges     int64
	ByCounter map[likes.Counter]int64
}

// Export is one run. It runs once.
type Export struct {
	walker   store.Walker
	config   Config
	out      sink
	rows     []row
	sum      Summary
	done     atomic.Int64
	estimate atomic.Int64
}

// New returns an export that is ready to run, or ErrInvalid.
func New(w store.Walker, out io.Writer, c Config) (*Export, error) {
	if c.User < 0 {
		return nil, likes.Errorf(likes.ErrInvalid, "user %d", c.User)
	}
	if c.User != 0 && c.Pseudonyms != nil {
		return nil, likes.Errorf(likes.ErrInvalid, "an export of user %d alone hides nobody behind a pseudonym", c.User)
	}
	sink, err := newSink(out, c.Format, c.Pseudonyms != nil)
	if err != nil {
		return nil, err
	}
	if c.Pseudonyms != nil {
		sink = newPseudonyms(sink, *c.Pseudonyms, shuffled)
	}
	return &Export{
		walker: w, config: c, out: sink,
		sum: Summary{ByCounter: make(map[likes.Counter]int64)},
	}, nil
}

// Progress returns how many edges have been written and about how many there
// are, 0 if unknown. It may be called while the export runs.
func (e *Export) Progress() (done, estimate int64) { return e.done.Load(), e.estimate.Load() }

// Run writes all edges and returns how many, also with an error: then the output
// ends somewhere, and is of use only as a part.
func (e *Export) Run(ctx context.Context) (Summary, error) {
	run := e.walk
	if e.config.User > 0 {
		run = e.user
	}
	if err := run(ctx); err != nil {
		return e.sum, err
	}
	if err := e.out.close(); err != nil {
		return e.sum, writeError(err)
	}
	return e.sum, nil
}

// walk writes the edges of all users, in the order of the primary key: counter,
// item type, item, user.
func (e *Export) walk(ctx context.Context) error {
	c := e.config.Counter
	// Without an estimate there is no time left to show, which is no failure.
	if n, err := e.walker.EstimateEdges(ctx, c); err == nil {
		e.estimate.Store(n)
	}
	after := likes.Edge{Counter: c}
	for {
		var page store.EdgePage
		err := retry.Do(ctx, func() (err error) {
			page, err = e.walker.WalkEdges(ctx, after, store.MaxWalk)
			return err
		})
		if err != nil {
			return fmt.Errorf("read on behind %v: %w", after, err)
		}
		beyond := func(counter likes.Counter) bool { return c != 0 && counter != c }
		for i, m := range page.Members {
			if beyond(m.Edge.Counter) {
				page.Members = page.Members[:i]
				break
			}
		}
		if err := e.write(page.Members); err != nil {
			return err
		}
		if page.Next == (likes.Edge{}) || beyond(page.Next.Counter) {
			return nil
		}
		after = page.Next
	}
}

// user writes one user's edges, counter by counter.
func (e *Export) user(ctx context.Context) error {
	counters := []likes.Counter{likes.Likes, likes.Saves}
	if e.config.Counter != 0 {
		counters = []likes.Counter{e.config.Counter}
	}
	for _, c := range counters {
		for after, more := (likes.Item{}), true; more; {
			var page []likes.Member
			err := retry.Do(ctx, func() (err error) {
				page, err = e.walker.LikedBy(ctx, c, e.config.User, after, likes.MaxPage)
				return err
			})
			if err != nil {
				return fmt.Errorf("read the %v of user %d: %w", c, e.config.User, err)
			}
			if err := e.write(page); err != nil {
				return err
			}
			if more = len(page) == likes.MaxPage; more {
				after = page[len(page)-1].Edge.Item
			}
		}
	}
	return nil
}

func (e *Export) write(page []likes.Member) error {
	e.rows = e.rows[:0]
	for _, m := range page {
		name := e.config.Types.Name(m.Edge.Item.Type)
		if _, ok := e.config.Types.Type(name); !ok {
			return likes.Errorf(likes.ErrInvalid,
				"%v: the configuration has no name for item type %d, without which the line could not be imported; add it to items.types",
				m.Edge, m.Edge.Item.Type)
		}
		e.rows = append(e.rows, row{edge: m.Edge, likedAt: m.LikedAt, itemType: name})
	}
	if err := e.out.add(e.rows); err != nil {
		return writeError(err)
	}
	for _, m := range page {
		e.sum.ByCounter[m.Edge.Counter]++
	}
	e.sum.Edges += int64(len(page))
	e.done.Store(e.sum.Edges)
	return nil
}

func writeError(err error) error { return fmt.Errorf("write the export: %w", err) }
