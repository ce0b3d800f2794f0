package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

// firstYear and lastYear bound the begin of a like: outside them a time may not
// fit into 64 bits of microseconds.
const firstYear, lastYear = 1, 9999

// Commit implements [store.Edges] with one statement. Writes that are not in
// order or name an edge twice are ErrInvalid: the first could deadlock, the
// second would be refused by the server.
func (s *Store) Commit(ctx context.Context, c store.Commit, out []store.Written) error {
	if len(c.Writes) == 0 {
		return nil
	}
	if err := check(c.Writes); err != nil {
		return err
	}
	statement := issueStatement
	if c.Replay {
		statement = replayStatement
	}
	var fixed int
	return s.write(ctx, fmt.Sprintf("write %d edges", len(c.Writes)), func(p *params) { s.encode(p, c); fixed = p.mark() },
		func(ctx context.Context, p *params) error {
			a := answer{writes: c.Writes, out: out[:len(c.Writes)], epoch: s.epoch}
			clear(a.out)
			if c.Replay {
				return s.run(ctx, statement, p, a.row)
			}
			p.back(fixed)
			p.int8(s.inTime(ctx))
			if err := s.run(ctx, statement, p, a.row); err != nil {
				return err
			}
			if a.late() {
				_, err := s.Now(ctx)
				return errors.Join(errLate, err)
			}
			return nil
		})
}

// write encodes the parameters of a transaction and attempts it until it is
// decided. An attempt begins its answer anew.
func (s *Store) write(ctx context.Context, what string, encode func(*params), attempt func(context.Context, *params) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	p := s.params.Get().(*params) //nolint:forcetypeassert // the pool makes nothing else
	defer s.params.Put(p)
	p.reset()
	encode(p)
	if err := persist(ctx, func() error { return attempt(ctx, p) }); err != nil {
		return s.writeErr(what, err)
	}
	return nil
}

func check(ws []store.Write) error {
	for i := range ws {
		if i > 0 && ws[i-1].Edge.Compare(ws[i].Edge) >= 0 {
			return likes.Errorf(likes.ErrInvalid, "writes[%d] (%v) does not follow the one before in key order; nothing was applied", i, ws[i].Edge)
		}
		if y := ws[i].LikedAt.Year(); y < firstYear || y > lastYear {
			return likes.Errorf(likes.ErrInvalid, "writes[%d] (%v): liked_at is in the year %d; nothing was applied", i, ws[i].Edge, y)
		}
	}
	return nil
}

func (s *Store) encode(p *params, c store.Commit) {
	ws := c.Writes
	n := len(ws)
	p.int2s(n, func(i int) int16 { return int16(ws[i].Edge.Counter) })
	p.int2s(n, func(i int) int16 { return int16(ws[i].Edge.Item.Type) })
	p.int8s(n, func(i int) int64 { return int64(ws[i].Edge.Item.ID) })
	p.int8s(n, func(i int) int64 { return int64(ws[i].Edge.User) })
	p.int8s(n, func(i int) int64 { return int64(ws[i].Clock) })
	p.times(n, func(i int) time.Time { return ws[i].LikedAt })
	p.bools(n, func(i int) bool { return ws[i].Liked })
	p.uuids(n, func(i int) [16]byte { return s.hashKey.Hash(ws[i].Edge.User) })
	if c.Replay {
		return
	}
	var restarted []likes.Clock
	for i := range ws {
		if ws[i].Restarted && ws[i].Liked {
			restarted = append(restarted, ws[i].Clock)
		}
	}
	p.int8s(len(restarted), func(i int) int64 { return int64(restarted[i]) })
}

// answer puts the rows of a batch where they belong.
type answer struct {
	writes []store.Write
	out    []store.Written
	epoch  likes.Epoch
	next   int // where the next edge is, as long as they come in order
}

func (a *answer) row(v [][]byte) {
	e := likes.Edge{
		Counter: likes.Counter(smallint(v[0])),
		Item:    likes.Item{Type: likes.ItemType(smallint(v[1])), ID: likes.ItemID(bigint(v[2]))},
		User:    likes.UserID(bigint(v[3])),
	}
	if e.Counter == 0 {
		a.erased(e.User)
		return
	}
	if e.User == 0 {
		a.counter(e, bigint(v[5]), bigint(v[6]))
		return
	}
	i := a.next
	if i >= len(a.writes) || a.writes[i].Edge != e {
		i = a.find(e)
	}
	a.next = i + 1
	a.out[i].Applied, a.out[i].Was, a.out[i].Clock = true, boolean(v[4]), likes.Clock(bigint(v[5]))
}

// late says whether the server found an issued batch too late: a row would have
// come for every edge of a user who is not erased.
func (a *answer) late() bool {
	return a.next == 0 && slices.ContainsFunc(a.out, func(w store.Written) bool { return !w.Erased })
}

func (a *answer) erased(user likes.UserID) {
	for i := range a.writes {
		if a.writes[i].Edge.User == user {
			a.out[i].Erased = true
		}
	}
}

// counter gives the item's counter to all of its edges that were written.
func (a *answer) counter(first likes.Edge, n, version int64) {
	for i := a.find(first); i < len(a.writes); i++ {
		e := &a.writes[i].Edge
		if e.Counter != first.Counter || e.Item != first.Item {
			return
		}
		if a.out[i].Applied {
			a.out[i].Count, a.out[i].Version = n, likes.CountVersion{Epoch: a.epoch, N: version}
		}
	}
}

// find returns the position of the edge, or of the first one after it.
func (a *answer) find(e likes.Edge) int {
	i, _ := slices.BinarySearchFunc(a.writes, e, func(w store.Write, e likes.Edge) int { return w.Edge.Compare(e) })
	return i
}
