package erase_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"likectl/pkg/erase"
	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/store/sqlite"
)

const user = likes.UserID(7)

// open returns a store in which some users like some items, user 7 all of them,
// and its file.
func open(t *testing.T, users, items int) (*sqlite.Store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "likes.db")
	s, err := sqlite.Open(t.Context(), path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	var ws []store.Write
	for i := range items {
		for u := range users {
			ws = append(ws, store.Write{Edge: edge(i+1, likes.UserID(u+7)), Liked: true, Clock: 4096, LikedAt: time.Unix(1, 0)})
		}
	}
	// What the user took back is of it too.
	ws = append(ws, store.Write{Edge: edge(items+1, user), Clock: 4096})
	for chunk := range slices.Chunk(ws, 1000) {
		require.NoError(t, s.Commit(t.Context(), store.Commit{Writes: chunk}, make([]store.Written, len(chunk))))
	}
	return s, path
}

func edge(item int, u likes.UserID) likes.Edge {
	return likes.Edge{Counter: likes.Likes, Item: likes.Item{Type: 1, ID: likes.ItemID(item)}, User: u}
}

func nobody(likes.UserID, store.Erasure) error { return nil }

func run(t *testing.T, s erase.Store, c erase.Config) (erase.Summary, error) {
	t.Helper()
	w, err := erase.New(s, c, nobody)
	require.NoError(t, err)
	return w.Run(t.Context())
}

func fast(users ...likes.UserID) erase.Config {
	return erase.Config{Users: users, PerSecond: erase.MaxPerSecond}
}

// exact requires that every count is the number of edges, and so many.
func exact(t *testing.T, s *sqlite.Store, items int, want int64) {
	t.Helper()
	a, err := s.Audit(t.Context(), store.Key{}, 10_000)
	require.NoError(t, err)
	require.Empty(t, a.Drifts)
	all := make([]likes.Item, items)
	for i := range all {
		all[i] = edge(i+1, 0).Item
	}
	rows := make([]store.CountRow, items)
	require.NoError(t, s.Counts(t.Context(), likes.Likes, all, rows))
	for _, r := range rows {
		require.Equal(t, want, r.N)
	}
}

func registry(t *testing.T, s erase.Store, secret byte) *erase.Local {
	t.Helper()
	l, err := erase.NewLocal(s, erase.ReceiptConfig{
		Secret: slices.Repeat([]byte{secret}, 32), Store: "sqlite", LogRetention: time.Hour, BackupRetention: 30 * 24 * time.Hour,
	})
	require.NoError(t, err)
	return l
}

func TestAnErasedUserIsGoneAndASecondRunChangesNothing(t *testing.T) {
	s, _ := open(t, 3, 700)
	w, err := erase.New(s, fast(user), nobody)
	require.NoError(t, err)
	sum, err := w.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, erase.Summary{Users: 1, Removed: store.Remains{Edges: 700, Tombstones: 1}}, sum)
	rows, users := w.Progress()
	require.Equal(t, []int64{701, 1}, []int64{rows, users})
	exact(t, s, 700, 2)

	l := registry(t, s, 1)
	first, err := l.Receipt(t.Context(), user)
	require.NoError(t, err)
	require.EqualValues(t, 700, first.Edges)
	require.Equal(t, s.HashUser(user).String(), first.UserHash)
	require.Equal(t, first.FinishedAt.Add(30*24*time.Hour), first.BackupsExpireAt)
	found, err := l.Verify(t.Context(), user, &first)
	require.NoError(t, err)
	require.Empty(t, found)

	sum, err = run(t, s, fast(user))
	require.NoError(t, err)
	require.Equal(t, erase.Summary{Already: 1}, sum)
	again, err := l.Receipt(t.Context(), user)
	require.NoError(t, err)
	require.Equal(t, first, again)
	exact(t, s, 700, 2)
}

// late ends the context once so many steps are done.
type late struct {
	erase.Store
	steps int
	stop  context.CancelFunc
}

func (l *late) StepErase(ctx context.Context, u likes.UserID, limit int) (store.Erasure, error) {
	e, err := l.Store.StepErase(ctx, u, limit)
	if l.steps--; l.steps == 0 {
		l.stop()
	}
	return e, err
}

func TestWhatBrokeOffIsGoneOnWith(t *testing.T) {
	s, _ := open(t, 2, 900)
	l := registry(t, s, 1)
	_, err := l.Receipt(t.Context(), user)
	require.ErrorIs(t, err, likes.ErrNotFound)

	ctx, stop := context.WithCancel(t.Context())
	w, err := erase.New(&late{s, 2, stop}, erase.Config{Users: []likes.UserID{user, 8}, PerSecond: 200}, nobody)
	require.NoError(t, err)
	part, err := w.Run(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Positive(t, part.Rows())
	left, err := s.Remains(t.Context(), user)
	require.NoError(t, err)
	require.Equal(t, int64(901), left.Edges+left.Tombstones+part.Rows())
	_, err = l.Receipt(t.Context(), user)
	require.ErrorIs(t, err, likes.ErrNotYet)
	found, err := l.Verify(t.Context(), user, nil)
	require.NoError(t, err)
	require.Equal(t, "unfinished", found[0].What)

	// Nothing is applied for either any more, also for the one whose turn has not
	// come.
	out := make([]store.Written, 2)
	require.NoError(t, s.Commit(t.Context(), store.Commit{Writes: []store.Write{
		{Edge: edge(5000, user), Liked: true, Clock: 8192}, {Edge: edge(5000, 8), Liked: true, Clock: 8192},
	}}, out))
	require.Equal(t, []store.Written{{Erased: true}, {Erased: true}}, out)

	var ended []likes.UserID
	rest, err := erase.Resume(t.Context(), s, erase.MaxPerSecond, func(u likes.UserID, e store.Erasure) error {
		require.Equal(t, s.HashUser(u), e.User)
		ended = append(ended, u)
		return nil
	})
	require.NoError(t, err)
	require.EqualValues(t, 2, rest.Users)
	require.ElementsMatch(t, []likes.UserID{7, 8}, ended)
	require.EqualValues(t, 1801, part.Rows()+rest.Rows())
	exact(t, s, 900, 0)
	rest, err = erase.Resume(t.Context(), s, erase.MaxPerSecond, nobody)
	require.NoError(t, err)
	require.Zero(t, rest)
}

func TestAMergeMovesWhatThereIs(t *testing.T) {
	s, _ := open(t, 2, 20)
	c := fast(user)
	c.Into = 8
	sum, err := run(t, s, c)
	require.NoError(t, err)
	require.EqualValues(t, 21, sum.Rows())
	exact(t, s, 20, 1)
	r, err := registry(t, s, 1).Receipt(t.Context(), user)
	require.NoError(t, err)
	require.True(t, r.Merged)
	c.Into = 0
	_, err = run(t, s, c)
	require.ErrorIs(t, err, likes.ErrInvalid, "it was merged, not erased")
}

func TestVerifyFindsWhatCameBack(t *testing.T) {
	s, path := open(t, 1, 3)
	_, err := run(t, s, fast(user))
	require.NoError(t, err)
	raw, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(20000)")
	require.NoError(t, err)
	defer func() { require.NoError(t, raw.Close()) }()
	for _, statement := range []string{
		"insert into edges (counter, item_type, item_id, user_id, liked, clock, liked_at) values (1, 1, 1, 7, 1, 1, 1), (1, 1, 2, 7, 0, 1, 1)",
		"insert into follows (follower_id, followee_id) values (9, 7)",
	} {
		_, err := raw.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	found, err := registry(t, s, 1).Verify(t.Context(), user, nil)
	require.NoError(t, err)
	var what []string
	for _, f := range found {
		what = append(what, f.What)
		require.Contains(t, f.Text, "1 ")
	}
	require.Equal(t, []string{"edges", "tombstones", "relations"}, what)
	found, err = registry(t, s, 1).Verify(t.Context(), 99, nil)
	require.NoError(t, err)
	require.Equal(t, "record", found[0].What)
}

// slow is a store of some rows that takes its time for each.
type slow struct {
	erase.Store // not called
	rows        int
	per         time.Duration
	limits      []int
	fail        int
}

func (s *slow) BeginErase(context.Context, []likes.UserID, likes.UserID) error { return s.flaky() }

func (s *slow) Erasure(context.Context, likes.UserID) (store.Erasure, bool, error) {
	return store.Erasure{}, true, nil
}

func (s *slow) StepErase(_ context.Context, _ likes.UserID, limit int) (store.Erasure, error) {
	if err := s.flaky(); err != nil {
		return store.Erasure{}, err
	}
	const all = 10_000
	n := min(limit, s.rows)
	time.Sleep(time.Duration(n) * s.per) // the bubble's
	s.rows -= n
	s.limits = append(s.limits, limit)
	e := store.Erasure{Edges: int64(all - s.rows)}
	if s.rows == 0 {
		e.Finished = time.Now()
	}
	return e, nil
}

// flaky fails the first and the third call: one to begin, one to step.
func (s *slow) flaky() error {
	if s.fail++; s.fail == 1 || s.fail == 3 {
		return likes.Errorf(likes.ErrUnavailable, "away")
	}
	return nil
}

func TestStepsHoldLocksFor10MillisecondsAndTheRateIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{rows: 10_000, per: 100 * time.Microsecond}
		began := time.Now()
		_, err := run(t, s, erase.Config{Users: []likes.UserID{user}, PerSecond: 1000})
		require.NoError(t, err)
		for _, limit := range s.limits[1:] {
			require.Equal(t, 100, limit, "10 ms at 100 µs a row")
		}
		require.InDelta(t, 10, time.Since(began).Seconds(), 10*0.5, "10,000 rows at 1,000/s, and what the retries waited")
		require.GreaterOrEqual(t, time.Since(began), 9900*time.Millisecond)
	})
	synctest.Test(t, func(t *testing.T) {
		s := &slow{rows: 10_000, per: time.Microsecond}
		_, err := run(t, s, fast(user))
		require.NoError(t, err)
		require.Equal(t, store.MaxErase, slices.Max(s.limits), "a store that is fast enough gets full steps")
	})
	synctest.Test(t, func(t *testing.T) {
		s := &slow{rows: 30, per: time.Microsecond}
		_, err := run(t, s, erase.Config{Users: []likes.UserID{user}, PerSecond: 3})
		require.NoError(t, err)
		require.Equal(t, 3, slices.Max(s.limits), "not in one burst")
	})
}

func TestAStoreThatIsSlowerThanTheRateIsLeftToOthersTwoThirdsOfTheTime(t *testing.T) {
	for rate, want := range map[int]time.Duration{erase.DefaultPerSecond: 30 * time.Second, erase.MaxPerSecond: 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := &slow{rows: 10_000, per: time.Millisecond}
			began := time.Now()
			_, err := run(t, s, erase.Config{Users: []likes.UserID{user}, PerSecond: rate})
			require.NoError(t, err)
			require.InDelta(t, want, time.Since(began), float64(time.Second), "at %d rows a second", rate)
		})
	}
}

func TestBadWorkIsRefused(t *testing.T) {
	for name, c := range map[string]erase.Config{
		"nobody":          {PerSecond: 1},
		"too many":        {PerSecond: 1, Users: make([]likes.UserID, erase.MaxUsers+1)},
		"no id":           {PerSecond: 1, Users: []likes.UserID{1, 0}},
		"no rate":         {Users: []likes.UserID{1}},
		"negative rate":   {Users: []likes.UserID{1}, PerSecond: -1},
		"too fast":        {Users: []likes.UserID{1}, PerSecond: erase.MaxPerSecond + 1},
		"into itself":     {Users: []likes.UserID{1}, Into: 1, PerSecond: 1},
		"into no id":      {Users: []likes.UserID{1}, Into: -1, PerSecond: 1},
		"two into one":    {Users: []likes.UserID{1, 2}, Into: 3, PerSecond: 1},
		"begun into some": {Users: []likes.UserID{1}, Into: 3, Begun: true, PerSecond: 1},
	} {
		_, err := erase.New(nil, c, nobody)
		require.ErrorIs(t, err, likes.ErrInvalid, name)
	}
}
