package batch_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"likectl/pkg/batch"
	"likectl/pkg/likes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store is a flush function that records what it was given and can be held.
type store struct {
	mu      sync.Mutex
	batches [][]int
	hold    chan struct{} // if set, each flush waits for one receive
	err     error
}

func (s *store) flush(ctx context.Context, _ int, ops, out []int) error {
	if s.hold != nil {
		select {
		case <-s.hold:
		case <-ctx.Done():
			return likes.Errorf(likes.ErrUncertain, "cancelled")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = append(s.batches, append([]int(nil), ops...))
	for i, op := range ops {
		out[i] = op * 10
	}
	return s.err
}

func (s *store) seen() [][]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([][]int(nil), s.batches...)
}

var roomy = batch.Config{Lanes: 1, MaxBatch: 100, MaxQueue: 1000, FlushTimeout: time.Minute}

func start(t *testing.T, cfg batch.Config, s *store) *batch.Batcher[int, int] {
	t.Helper()
	b, err := batch.Start(cfg, s.flush)
	require.NoError(t, err)
	return b
}

func one(b *batch.Batcher[int, int], ctx context.Context, op int) batch.Answer[int] {
	out := make([]batch.Answer[int], 1)
	b.Do(ctx, []int{op}, []int{0}, out)
	return out[0]
}

func TestABatchIsWhatArrivedWhileTheLastWasInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{hold: make(chan struct{})}
		b := start(t, roomy, s)
		var wg sync.WaitGroup
		submit := func(op int) {
			wg.Go(func() { require.Equal(t, batch.Answer[int]{Res: op * 10}, one(b, t.Context(), op)) })
			synctest.Wait() // so that the order of arrival is known
		}
		submit(1) // flushed alone and at once: nothing else waits
		submit(2)
		submit(3)
		submit(4)
		s.hold <- struct{}{}
		s.hold <- struct{}{}
		wg.Wait()
		require.Equal(t, [][]int{{1}, {2, 3, 4}}, s.seen())
		require.NoError(t, b.Close(t.Context()))
	})
}

func TestMaxBatchSplitsAndKeepsTheOrder(t *testing.T) {
	s := &store{}
	cfg := roomy
	cfg.MaxBatch = 3
	b := start(t, cfg, s)
	ops, lanes, out := make([]int, 8), make([]int, 8), make([]batch.Answer[int], 8)
	for i := range ops {
		ops[i] = i
	}
	b.Do(t.Context(), ops, lanes, out)
	for i := range out {
		require.Equal(t, batch.Answer[int]{Res: i * 10}, out[i])
	}
	require.Equal(t, [][]int{{0, 1, 2}, {3, 4, 5}, {6, 7}}, s.seen())
	require.NoError(t, b.Close(t.Context()))
}

func TestAFullQueueRefusesAtOnceAndAppliesNothingOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{hold: make(chan struct{})}
		cfg := roomy
		cfg.MaxQueue = 2
		b := start(t, cfg, s)
		var wg sync.WaitGroup
		for op := 1; op <= 3; op++ { // one in flight, two queued
			wg.Go(func() { require.NoError(t, one(b, t.Context(), op).Err) })
			synctest.Wait()
		}
		require.Equal(t, 2, b.Queued())
		require.ErrorIs(t, one(b, t.Context(), 4).Err, likes.ErrOverloaded)
		close(s.hold)
		wg.Wait()
		require.Equal(t, [][]int{{1}, {2, 3}}, s.seen())
		require.NoError(t, one(b, t.Context(), 5).Err, "not accepted again after the queue emptied")
		require.NoError(t, b.Close(t.Context()))
	})
}

func TestACallIsRefusedOrQueuedAsAWholePerLane(t *testing.T) {
	s := &store{}
	cfg := roomy
	cfg.Lanes, cfg.MaxQueue = 2, 2
	b := start(t, cfg, s)
	out := make([]batch.Answer[int], 4)
	b.Do(t.Context(), []int{1, 2, 3, 4}, []int{0, 1, 0, 0}, out)
	require.NoError(t, out[1].Err)
	for _, i := range []int{0, 2, 3} {
		require.ErrorIs(t, out[i].Err, likes.ErrOverloaded)
	}
	require.Equal(t, [][]int{{2}}, s.seen())
	require.NoError(t, b.Close(t.Context()))
}

func TestACancelledCallerGetsUncertainAndTheWorkIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{hold: make(chan struct{})}
		b := start(t, roomy, s)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for op := 1; op <= 2; op++ { // one in flight and one queued
			wg.Go(func() { require.ErrorIs(t, one(b, ctx, op).Err, likes.ErrUncertain) })
			synctest.Wait()
		}
		cancel()
		wg.Wait()
		require.Empty(t, s.seen())
		close(s.hold)
		require.NoError(t, b.Close(t.Context()))
		require.Equal(t, [][]int{{1}, {2}}, s.seen())
	})
}

func TestWhatWasDoneBeforeTheCallerLeftKeepsItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{hold: make(chan struct{})}
		cfg := roomy
		cfg.MaxBatch = 1
		b := start(t, cfg, s)
		ctx, cancel := context.WithCancel(t.Context())
		out := make([]batch.Answer[int], 2)
		done := make(chan struct{})
		go func() {
			b.Do(ctx, []int{1, 2}, []int{0, 0}, out)
			close(done)
		}()
		s.hold <- struct{}{}
		synctest.Wait()
		cancel()
		<-done
		require.Equal(t, batch.Answer[int]{Res: 10}, out[0])
		require.ErrorIs(t, out[1].Err, likes.ErrUncertain)
		close(s.hold)
		require.NoError(t, b.Close(t.Context()))
	})
}

func TestAFlushErrorAnswersAllOfItsBatchAndNoOther(t *testing.T) {
	s := &store{err: errors.New("disk on fire")}
	b := start(t, roomy, s)
	require.EqualError(t, one(b, t.Context(), 1).Err, "disk on fire")
	s.mu.Lock()
	s.err = nil
	s.mu.Unlock()
	require.NoError(t, one(b, t.Context(), 2).Err)
	require.NoError(t, b.Close(t.Context()))
	require.NoError(t, b.Close(t.Context()), "closed twice")
}

func TestCloseFlushesWhatIsQueuedAndRefusesTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{hold: make(chan struct{})}
		b := start(t, roomy, s)
		var wg sync.WaitGroup
		for op := 1; op <= 3; op++ {
			wg.Go(func() { require.NoError(t, one(b, t.Context(), op).Err) })
			synctest.Wait()
		}
		closed := make(chan error)
		go func() { closed <- b.Close(t.Context()) }()
		synctest.Wait()
		require.ErrorIs(t, one(b, t.Context(), 4).Err, likes.ErrUnavailable)
		close(s.hold)
		require.NoError(t, <-closed)
		wg.Wait()
		require.Equal(t, [][]int{{1}, {2, 3}}, s.seen())
	})
}

func TestCloseGivesUpWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{hold: make(chan struct{})}
		b := start(t, roomy, s)
		var wg sync.WaitGroup
		wg.Go(func() { require.ErrorIs(t, one(b, t.Context(), 1).Err, likes.ErrUncertain) })
		synctest.Wait()
		wg.Go(func() { require.ErrorIs(t, one(b, t.Context(), 2).Err, likes.ErrUnavailable, "it was never sent") })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, b.Close(ctx), context.DeadlineExceeded)
		wg.Wait()
		require.Empty(t, s.seen())
	})
}

func TestAFlushHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{hold: make(chan struct{})}
		b := start(t, roomy, s)
		began := time.Now()
		require.ErrorIs(t, one(b, t.Context(), 1).Err, likes.ErrUncertain)
		require.Equal(t, roomy.FlushTimeout, time.Since(began))
		close(s.hold)
		require.NoError(t, b.Close(t.Context()))
	})
}

func TestLimitsBelowOneAreRejected(t *testing.T) {
	for _, spoil := range []func(*batch.Config){
		func(c *batch.Config) { c.Lanes = 0 },
		func(c *batch.Config) { c.MaxBatch = -1 },
		func(c *batch.Config) { c.MaxQueue = 0 },
		func(c *batch.Config) { c.FlushTimeout = 0 },
	} {
		cfg := roomy
		spoil(&cfg)
		_, err := batch.Start(cfg, (&store{}).flush)
		require.ErrorIs(t, err, likes.ErrInvalid)
	}
}

// Many callers, some of whom leave: everything answered without an error was
// flushed exactly once, everything refused never.
func TestEveryOperationIsFlushedOnceOrRefused(t *testing.T) {
	const callers, rounds = 50, 200
	s := &store{}
	b := start(t, batch.Config{Lanes: 3, MaxBatch: 7, MaxQueue: 40, FlushTimeout: time.Minute}, s)
	type verdict struct{ done, refused, uncertain map[int]bool }
	verdicts := make([]verdict, callers)
	var wg sync.WaitGroup
	for c := range callers {
		v := verdict{map[int]bool{}, map[int]bool{}, map[int]bool{}}
		verdicts[c] = v
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(c)))
			for round := range rounds {
				n := 1 + r.IntN(6)
				ops, lanes, out := make([]int, n), make([]int, n), make([]batch.Answer[int], n)
				for i := range ops {
					ops[i] = (c*rounds+round)*10 + i
					lanes[i] = r.IntN(3)
				}
				ctx, cancel := context.WithCancel(t.Context())
				if r.IntN(4) == 0 {
					cancel()
				}
				b.Do(ctx, ops, lanes, out)
				cancel()
				for i, a := range out {
					switch {
					case a.Err == nil:
						v.done[ops[i]] = a.Res == ops[i]*10
					case errors.Is(a.Err, likes.ErrOverloaded):
						v.refused[ops[i]] = true
					default:
						v.uncertain[ops[i]] = errors.Is(a.Err, likes.ErrUncertain)
					}
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, b.Close(t.Context()))
	flushed := map[int]int{}
	for _, ops := range s.seen() {
		for _, op := range ops {
			flushed[op]++
		}
	}
	var refused, uncertain int
	for _, v := range verdicts {
		for op, right := range v.done {
			require.True(t, right, "operation got another's answer")
			require.Equal(t, 1, flushed[op])
		}
		for op := range v.refused {
			require.Zero(t, flushed[op])
		}
		for op, right := range v.uncertain {
			require.True(t, right)
			require.Equal(t, 1, flushed[op], "the work of a caller that left was dropped")
		}
		refused, uncertain = refused+len(v.refused), uncertain+len(v.uncertain)
	}
	t.Logf("refused %d, uncertain %d", refused, uncertain)
	require.NotZero(t, uncertain)
}

func BenchmarkDo(b *testing.B) {
	bt, err := batch.Start(batch.Config{Lanes: 2, MaxBatch: 512, MaxQueue: 1 << 16, FlushTimeout: time.Minute},
		func(context.Context, int, []int, []int) error { return nil })
	require.NoError(b, err)
	b.SetParallelism(256)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		ops, lanes, out := []int{1}, []int{0}, make([]batch.Answer[int], 1)
		for pb.Next() {
			bt.Do(b.Context(), ops, lanes, out)
		}
	})
	require.NoError(b, bt.Close(b.Context()))
}

func TestObserve_IsToldOfEveryFlushThatAnsweredACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type told struct {
			queued time.Time
			batch.Flight
		}
		var seen []told
		cfg := roomy
		cfg.Lanes, cfg.MaxBatch = 2, 2
		cfg.Observe = func(_ context.Context, queued time.Time, f batch.Flight) { seen = append(seen, told{queued, f}) }
		began := time.Now()
		broken := errors.New("broken")
		b, err := batch.Start(cfg, func(_ context.Context, lane int, _, _ []int) error {
			time.Sleep(time.Duration(lane+1) * time.Second)
			if lane == 1 {
				return broken
			}
			return nil
		})
		require.NoError(t, err)
		out := make([]batch.Answer[int], 4)
		b.Do(t.Context(), []int{1, 2, 3, 4}, []int{0, 1, 0, 0}, out)
		at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
		require.ElementsMatch(t, []told{
			{began, batch.Flight{Lane: 0, Ops: 2, Began: began, Ended: at(1)}},
			{began, batch.Flight{Lane: 0, Ops: 1, Began: at(1), Ended: at(2)}},
			{began, batch.Flight{Lane: 1, Ops: 1, Began: began, Ended: at(2), Err: broken}},
		}, seen)

		seen = nil
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		b.Do(ctx, []int{1, 2}, []int{0, 1}, out[:2])
		require.Len(t, seen, 1, "it did not wait for the other one")
		require.Zero(t, seen[0].Lane)
		require.NoError(t, b.Close(t.Context()))
	})
}
