package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

// Add implements [store.Tallies] with one statement. Adds that are not in order
// or name an event twice are ErrInvalid.
func (s *Store) Add(ctx context.Context, adds []store.Add, out []store.Added) error {
	if len(adds) == 0 {
		return nil
	}
	for i := range adds {
		if i > 0 && adds[i-1].Compare(adds[i]) >= 0 {
			return likes.Errorf(likes.ErrInvalid, "adds[%d] (event %v) does not follow the one before in key order; nothing was counted", i, adds[i].Event)
		}
	}
	return s.write(ctx, fmt.Sprintf("add %d events", len(adds)), func(p *params) { encodeAdds(p, adds) },
		func(ctx context.Context, p *params) error {
			a := addAnswer{adds: adds, out: out[:len(adds)], epoch: s.epoch}
			clear(a.out)
			return s.run(ctx, addStatement, p, a.row)
		})
}

func encodeAdds(p *params, adds []store.Add) {
	n := len(adds)
	p.int2s(n, func(i int) int16 { return int16(adds[i].Counter) })
	p.int2s(n, func(i int) int16 { return int16(adds[i].Item.Type) })
	p.int8s(n, func(i int) int64 { return int64(adds[i].Item.ID) })
	p.uuids(n, func(i int) [16]byte { return adds[i].Event })
	p.times(n, func(i int) time.Time { return adds[i].At })
}

// addAnswer puts the rows of a batch where they belong: one for each new event,
// one for each item's counter, which has no event.
type addAnswer struct {
	adds  []store.Add
	out   []store.Added
	epoch likes.Epoch
}

func (a *addAnswer) row(v [][]byte) {
	of := store.Add{Key: store.Key{
		Counter: likes.Counter(smallint(v[0])),
		Item:    likes.Item{Type: likes.ItemType(smallint(v[1])), ID: likes.ItemID(bigint(v[2]))},
	}}
	copy(of.Event[:], v[3])
	i, _ := slices.BinarySearchFunc(a.adds, of, store.Add.Compare)
	if v[3] != nil {
		a.out[i].New = true
		return
	}
	for ; i < len(a.adds) && a.adds[i].Key == of.Key; i++ {
		a.out[i].Count, a.out[i].Version = bigint(v[4]), likes.CountVersion{Epoch: a.epoch, N: bigint(v[5])}
	}
}

// Forget implements [store.Tallies]. Instances may do so at the same time.
func (s *Store) Forget(ctx context.Context, before time.Time, limit int) (n int, err error) {
	err = s.write(ctx, "forget events", func(p *params) {
		p.time(before)
		p.int8(int64(limit))
	}, func(ctx context.Context, p *params) error {
		return s.run(ctx, forgetStatement, p, func(v [][]byte) { n = int(bigint(v[0])) })
	})
	return n, err
}
