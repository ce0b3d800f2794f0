package reconcile_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"likectl/pkg/likes"
	"likectl/pkg/reconcile"
	"likectl/pkg/store"
	"likectl/pkg/store/postgres"
	"likectl/pkg/store/sqlite"
	containers "likectl/testcontainers"
)

func TestMain(m *testing.M) {
	containers.Main(m, goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgconn.(*PgConn).asyncClose.func1"))
}

// db is a store with a second way into its tables, for damage.
type db struct {
	store.Edges
	store.Auditor
	raw *sql.DB
	// forge inserts a like that no counter knows of.
	forge string
}

const forge = "insert into edges (counter, item_type, item_id, user_id, clock, liked_at, liked%s) " +
	"select counter, item_type, item_id, 900, clock, liked_at, true%s from edges where user_id = 1 and item_id = ?"

// onEveryStore runs a test on both stores of tier 1.
func onEveryStore(t *testing.T, test func(*testing.T, db)) {
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "likes.db")
		s, err := sqlite.Open(t.Context(), path)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		test(t, db{s, s, openRaw(t, "sqlite", "file:"+path+"?_pragma=busy_timeout(20000)"), fmt.Sprintf(forge, "", "")})
	})
	t.Run("postgres", func(t *testing.T) {
		dsn := containers.SharedPostgres(t).MigratedDatabase(t, "likectl_schema", func(ctx context.Context, dsn string) error {
			_, err := postgres.SchemaUp(ctx, dsn)
			return err
		})
		s, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn, MaxConns: 8, StatementTimeout: 10 * time.Second})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		test(t, db{s, s, openRaw(t, "pgx", dsn), fmt.Sprintf(forge, ", was", ", false")})
	})
}

func openRaw(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	raw, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, raw.Close()) })
	return raw
}

// damage breaks an item.
func (d db) damage(t *testing.T, statement string, item int64) {
	t.Helper()
	_, err := d.raw.ExecContext(t.Context(), strings.Replace(statement, "?", strconv.FormatInt(item, 10), 1))
	require.NoError(t, err)
}

func key(id int64) store.Key {
	return store.Key{Counter: likes.Likes, Item: likes.Item{Type: 1, ID: likes.ItemID(id)}}
}

func write(user, id int64, liked bool) store.Write {
	k, now := key(id), time.Now()
	return store.Write{
		Edge:  likes.Edge{Counter: k.Counter, Item: k.Item, User: likes.UserID(user)},
		Liked: liked, Clock: likes.ClockAt(now, 1), LikedAt: now,
	}
}

// fill gives every item three likes.
func (d db) fill(t *testing.T, items int64) {
	t.Helper()
	for id := int64(1); id <= items; id++ {
		ws := []store.Write{write(1, id, true), write(2, id, true), write(3, id, true)}
		require.NoError(t, d.Commit(t.Context(), store.Commit{Writes: ws}, make([]store.Written, 3)))
	}
}

// damages returns the ways in which a counter can come to differ from its edges;
// the first six leave the edges alone.
func damages() []string {
	return []string{
		"update counters set count = count + 7 where item_id = ?",
		"update counters set count = count - 2 where item_id = ?",
		"update counters set count = -4 where item_id = ?",
		"update counters set count = 0 where item_id = ?",
		"update counters set count = 9000000000000 where item_id = ?",
		"delete from counters where item_id = ?",
		"delete from edges where item_id = ?",
		"delete from edges where user_id = 3 and item_id = ?",
		"update edges set liked = false where user_id = 3 and item_id = ?",
	}
}

func run(t *testing.T, a store.Auditor, c reconcile.Config) ([]reconcile.Found, reconcile.Summary) {
	t.Helper()
	var found []reconcile.Found
	if c.PerSecond == 0 {
		c.PerSecond = reconcile.MaxPerSecond
	}
	w, err := reconcile.New(a, c, func(f reconcile.Found) error { found = append(found, f); return nil })
	require.NoError(t, err)
	sum, err := w.Run(t.Context())
	require.NoError(t, err)
	return found, sum
}

func TestEveryDriftIsFoundAndRepaired(t *testing.T) {
	onEveryStore(t, testEveryDriftIsFoundAndRepaired)
}

func testEveryDriftIsFoundAndRepaired(t *testing.T, d db) {
	const items = 1200 // more than two chunks
	d.fill(t, items)
	damages := append([]string{d.forge}, damages()...)
	for n, damage := range damages {
		d.damage(t, damage, int64(100*n+1))
	}
	found, sum := run(t, d, reconcile.Config{DryRun: true})
	require.Len(t, found, len(damages))
	require.Equal(t, reconcile.Summary{Checked: items, Drifted: int64(len(damages)), Magnitude: sum.Magnitude}, sum)
	again, _ := run(t, d, reconcile.Config{DryRun: true})
	require.Equal(t, found, again, "a dry run changes nothing")
	for n, f := range found {
		require.Equal(t, key(int64(100*n+1)), f.Key)
		require.NotZero(t, f.Difference())
	}

	repaired, sum := run(t, d, reconcile.Config{})
	require.EqualValues(t, len(damages), sum.Repaired)
	for n := range repaired {
		require.Equal(t, found[n].Drift, repaired[n].Drift)
		require.True(t, repaired[n].Repaired)
	}
	found, sum = run(t, d, reconcile.Config{})
	require.Empty(t, found)
	require.Equal(t, reconcile.Summary{Checked: items}, sum)
}

func TestOnlyTheNamedCountersAreTouched(t *testing.T) {
	onEveryStore(t, testOnlyTheNamedCountersAreTouched)
}

func testOnlyTheNamedCountersAreTouched(t *testing.T, d db) {
	d.fill(t, 3)
	d.damage(t, damages()[0], 1)
	d.damage(t, damages()[0], 2)
	found, sum := run(t, d, reconcile.Config{Keys: []store.Key{key(2), key(3), key(77)}})
	require.Equal(t, []reconcile.Found{{Drift: store.Drift{Key: key(2), Stored: 10, Edges: 3}, Repaired: true}}, found)
	require.EqualValues(t, 2, sum.Checked, "of item 77 there is nothing to compare")
	found, _ = run(t, d, reconcile.Config{DryRun: true})
	require.Len(t, found, 1)
	require.Equal(t, key(1), found[0].Key)
}

// TestReconcileInALoopUnderLiveWrites: writers like and unlike all the time,
// damage is done all the time, and walks repair it all the time. At every moment
// that a walk ends, what was damaged before it began is right.
func TestReconcileInALoopUnderLiveWrites(t *testing.T) {
	onEveryStore(t, testReconcileInALoopUnderLiveWrites)
}

func testReconcileInALoopUnderLiveWrites(t *testing.T, d db) {
	const items, writers, rounds = 20, 4, 30
	d.fill(t, items)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var writes atomic.Int64
	errs := make([]error, writers)
	for n := range writers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(n)))
			out := make([]store.Written, 1)
			for ctx.Err() == nil {
				w := write(10+r.Int64N(20), 1+r.Int64N(items), r.IntN(2) == 0)
				if err := d.Commit(t.Context(), store.Commit{Writes: []store.Write{w}}, out); err != nil {
					errs[n] = err
					return
				}
				writes.Add(1)
			}
		})
	}
	for round := range rounds {
		hit := map[int64]bool{}
		for range 3 {
			id := 1 + rand.Int64N(items)
			// Edges that a live writer may hold are not deleted behind its back,
			// only counters: an edge's own state is the truth here.
			d.damage(t, damages()[rand.IntN(6)], id)
			hit[id] = true
		}
		found, sum := run(t, d, reconcile.Config{})
		require.Equal(t, sum.Drifted, sum.Repaired, "round %d", round)
		for _, f := range found {
			require.True(t, hit[int64(f.Item.ID)], "item %d was right and is said to drift", f.Item.ID)
		}
		found, _ = run(t, d, reconcile.Config{DryRun: true})
		require.Empty(t, found, "round %d", round)
	}
	stop()
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Greater(t, writes.Load(), int64(rounds), "writes did go on")
	var drift int
	require.NoError(t, d.raw.QueryRowContext(t.Context(), `select count(*) from counters c where count <>
		(select count(*) from edges e where e.item_id = c.item_id and liked = true)`).Scan(&drift))
	require.Zero(t, drift)
}

// A counter that was driven below the truth must come back to it, also when a
// like has been added since: no clamp, no lost like.
func TestACounterForcedBelowTruthIsRepairedAfterALike(t *testing.T) {
	onEveryStore(t, testACounterForcedBelowTruthIsRepairedAfterALike)
}

func testACounterForcedBelowTruthIsRepairedAfterALike(t *testing.T, d db) {
	d.fill(t, 1)
	d.damage(t, "update counters set count = -5 where item_id = ?", 1)
	out := make([]store.Written, 1)
	require.NoError(t, d.Commit(t.Context(), store.Commit{Writes: []store.Write{write(4, 1, true)}}, out))
	require.EqualValues(t, -4, out[0].Count, "the drift shows, it is not hidden")
	found, _ := run(t, d, reconcile.Config{Keys: []store.Key{key(1)}})
	require.EqualValues(t, 8, found[0].Difference())
	rows := make([]store.CountRow, 1)
	require.NoError(t, d.Counts(t.Context(), likes.Likes, []likes.Item{key(1).Item}, rows))
	require.EqualValues(t, 4, rows[0].N)
}

// script is an auditor whose store fails or is broken again.
type script struct {
	audit  func(n, limit int) (store.Audit, error)
	item   func(n int) (store.Audit, error)
	repair func(n int) error

	audits, items, repairs int
}

func (s *script) Audit(_ context.Context, _ store.Key, limit int) (store.Audit, error) {
	s.audits++
	return s.audit(s.audits, limit)
}

func (s *script) AuditItem(context.Context, []store.Key) (store.Audit, error) {
	s.items++
	return s.item(s.items)
}

func (s *script) Repair(context.Context, store.Key) (store.Drift, error) {
	s.repairs++
	return store.Drift{}, s.repair(s.repairs)
}

func (s *script) Estimate(context.Context) (int64, error) { return 0, errors.New("no idea") }

func TestAStoreThatIsAwayForAMomentIsAskedAgainInSmallerSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limits []int
		s := &script{
			audit: func(n, limit int) (store.Audit, error) {
				limits = append(limits, limit)
				switch n {
				case 1, 2:
					return store.Audit{}, likes.ErrUnavailable
				case 3:
					return store.Audit{Checked: limit, Next: key(9), Drifts: []store.Drift{{Key: key(1), Stored: 1}}}, nil
				default:
					return store.Audit{Checked: 1}, nil
				}
			},
			repair: func(n int) error {
				if n == 1 {
					return likes.ErrUncertain
				}
				return nil
			},
			item: func(int) (store.Audit, error) { return store.Audit{Checked: 1}, nil },
		}
		found, sum := run(t, s, reconcile.Config{})
		require.Equal(t, []int{500, 125, 31, 62}, limits)
		require.EqualValues(t, 32, sum.Checked)
		require.True(t, found[0].Repaired)
		require.Equal(t, 2, s.repairs)
	})
}

func TestAStoreThatStaysAwayEndsTheWalk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{audit: func(int, int) (store.Audit, error) { return store.Audit{}, likes.ErrUnavailable }}
		w, err := reconcile.New(s, reconcile.Config{PerSecond: 1}, nil)
		require.NoError(t, err)
		_, err = w.Run(t.Context())
		require.ErrorIs(t, err, likes.ErrUnavailable)
		require.Equal(t, 6, s.audits)
	})
}

func TestACounterThatIsBrokenAgainIsNotCalledRepaired(t *testing.T) {
	drift := store.Audit{Checked: 1, Drifts: []store.Drift{{Key: key(1), Stored: 5, Edges: 2}}}
	s := &script{
		item:   func(int) (store.Audit, error) { return drift, nil },
		repair: func(int) error { return nil },
	}
	found, sum := run(t, s, reconcile.Config{Keys: []store.Key{key(1)}})
	require.Equal(t, []reconcile.Found{{Drift: drift.Drifts[0]}}, found)
	require.Equal(t, reconcile.Summary{Checked: 1, Drifted: 1, Magnitude: 3}, sum)
	require.Equal(t, 3, s.repairs)
}

func TestTheWalkKeepsItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{audit: func(n, limit int) (store.Audit, error) {
			if n == 11 {
				return store.Audit{}, nil
			}
			return store.Audit{Checked: limit, Next: key(int64(n))}, nil
		}}
		began := time.Now()
		_, sum := run(t, s, reconcile.Config{PerSecond: 1000})
		require.EqualValues(t, 5000, sum.Checked)
		require.Equal(t, 5*time.Second, time.Since(began))
	})
}

func TestAnEndedContextEndsTheWalk(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &script{audit: func(n, limit int) (store.Audit, error) {
		cancel()
		return store.Audit{Checked: limit, Next: key(int64(n))}, nil
	}}
	w, err := reconcile.New(s, reconcile.Config{PerSecond: 1}, nil)
	require.NoError(t, err)
	sum, err := w.Run(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.EqualValues(t, 500, sum.Checked)
}

func TestLimitsAreChecked(t *testing.T) {
	for _, c := range []reconcile.Config{
		{PerSecond: 0},
		{PerSecond: -1},
		{PerSecond: reconcile.MaxPerSecond + 1},
		{PerSecond: 1, Keys: []store.Key{{}}},
		{PerSecond: 1, Keys: make([]store.Key, reconcile.MaxKeys+1)},
	} {
		require.ErrorIs(t, c.Validate(), likes.ErrInvalid, fmt.Sprint(c.PerSecond))
	}
}
