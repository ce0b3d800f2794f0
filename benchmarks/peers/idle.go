package main

import (
	"context"
	"errors"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"likectl/pkg/clock"
	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/store/postgres"
	"likectl/tiers/tier1"
)

// turn is how many likes one way makes before the other has its turn: so few that
// whatever else happens on the machine meets both.
const turn = 50

// alone measures one caller by turns: through the batcher, and with a call of the
// same single statement that knows of no batcher. The sample is the first; Extra has
// the other's quantiles.
func (l *lab) alone(ctx context.Context, d time.Duration) (Sample, error) {
	return l.pg.round(ctx, registers(), func(name string) (s Sample, unsure int64, err error) {
		service, db, err := l.openService(ctx, name)
		if err != nil {
			return s, 0, err
		}
		m := newMeter(true, map[string]int{database: l.pg.pid})
		s, err = takeTurns(ctx, service, db, d)
		s.CPU = m.perLike(s.Done)
		return s, 0, errors.Join(err, service.Close(context.WithoutCancel(ctx)), db.Close())
	})
}

func takeTurns(ctx context.Context, service *tier1.Service, db *postgres.Store, d time.Duration) (s Sample, err error) {
	pick, clk := newPicker(Uniform, 0), clock.New(2)
	batched := func() error {
		return service.Apply(ctx, []likes.Mutation{{Op: likes.Set, Edge: edge(pick.like())}})[0].Err
	}
	single := func() error {
		now := clk.Now()
		w := store.Write{Edge: edge(pick.like()), Liked: true, Clock: now, LikedAt: now.Time()}
		var out [1]store.Written
		return db.Commit(ctx, store.Commit{Writes: []store.Write{w}}, out[:])
	}
	ways := [2]func() error{batched, single}
	var latency [2]*hdrhistogram.Histogram
	for i := range latency {
		latency[i] = hdrhistogram.New(1, int64(time.Minute/time.Microsecond), 3)
	}
	start := time.Now()
	for i := 0; time.Since(start) < d; i = 1 - i {
		for range turn {
			from := time.Now()
			if err := ways[i](); err != nil {
				return s, err
			}
			s.Done++
			if err := latency[i].RecordValue(time.Since(from).Microseconds()); err != nil {
				return s, err
			}
		}
	}
	at := func(i int, q float64) float64 { return float64(latency[i].ValueAtQuantile(q)) / 1000 }
	s.Rate = float64(s.Done) / time.Since(start).Seconds()
	s.P50, s.P99 = at(0, 50), at(0, 99)
	s.Extra = map[string]float64{"single_p50_ms": at(1, 50), "single_p99_ms": at(1, 99)}
	return s, nil
}
