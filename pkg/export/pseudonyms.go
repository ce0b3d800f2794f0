package export

import (
	"bytes"
	"slices"
	"time"

	"likectl/pkg/pseudonym"
	"likectl/pkg/store"
)

// Pseudonyms says how users are named in an export.
type Pseudonyms struct {
	Salt pseudonym.Salt
	// ExactTime keeps liked_at to the microsecond. Otherwise it is the beginning
	// of the day, in UTC: a like's exact time is in other logs too, beside the
	// user's id.
	ExactTime bool
}

// shuffled is how many rows of an item are put into the order of their
// pseudonyms at once, some 14 MB of them.
const shuffled = 1 << 17

// pseudonyms puts pseudonyms in place of user ids before another sink.
//
// The walk comes in the order of user ids within an item. Written like that, the
// first likers of an item would be the oldest users, and two exports under
// different salts could be joined line by line. So the rows of an item are
// written in the order of the pseudonyms. Of items with more than a window of
// likers, that is the order within each window only.
type pseudonyms struct {
	out    sink
	namer  *pseudonym.Namer
	exact  bool
	window int
	held   []row // of one item
}

func newPseudonyms(out sink, p Pseudonyms, window int) *pseudonyms {
	return &pseudonyms{out: out, namer: p.Salt.Namer(), exact: p.ExactTime, window: window}
}

func (p *pseudonyms) add(rows []row) error {
	for _, r := range rows {
		r.name = p.namer.Name(r.edge.User)
		r.edge.User = 0 // whatever is done with the row, the id is gone
		if !p.exact {
			r.likedAt = r.likedAt.UTC().Truncate(24 * time.Hour)
		}
		if n := len(p.held); n == p.window || n > 0 && p.held[0].edge != r.edge {
			if err := p.flush(); err != nil {
				return err
			}
		}
		p.held = append(p.held, r)
	}
	return nil
}

func (p *pseudonyms) flush() error {
	slices.SortFunc(p.held, func(a, b row) int { return bytes.Compare(a.name[:], b.name[:]) })
	for part := range slices.Chunk(p.held, store.MaxWalk) { // what sinks are given without pseudonyms
		if err := p.out.add(part); err != nil {
			return err
		}
	}
	p.held = p.held[:0]
	return nil
}

func (p *pseudonyms) close() error {
	if err := p.flush(); err != nil {
		return err
	}
	return p.out.close()
}
