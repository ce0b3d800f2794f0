package sqlite_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/store/sqlite"
	"likectl/pkg/store/storetest"
)

func TestMain(m *testing.M) {
	runChild() // does not return in a child
	goleak.VerifyTestMain(m)
}

func TestSuite(t *testing.T) {
	storetest.Run(t, func(tb testing.TB) storetest.Store { return newRaw(tb) })
}

// raw is a store with a second way into its file.
type raw struct {
	*sqlite.Store
	db   *sql.DB
	path string
}

func newRaw(tb testing.TB) raw {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "likes.db")
	s := open(tb, path)
	return raw{Store: s, db: openSQL(tb, path), path: path}
}

func (r raw) Exec(ctx context.Context, statement string) error {
	_, err := r.db.ExecContext(ctx, statement)
	return err
}

func (r raw) Int(ctx context.Context, query string) (n int64, err error) {
	err = r.db.QueryRowContext(ctx, query).Scan(&n)
	return n, err
}

func open(tb testing.TB, path string) *sqlite.Store {
	tb.Helper()
	s, err := sqlite.Open(tb.Context(), path)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, s.Close()) })
	return s
}

// openSQL opens the file beside the store.
func openSQL(tb testing.TB, path string) *sql.DB {
	tb.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, db.Close()) })
	return db
}

func like(user likes.UserID, item likes.ItemID) store.Write {
	return store.Write{
		Edge:    likes.Edge{Counter: likes.Likes, Item: likes.Item{Type: 1, ID: item}, User: user},
		Liked:   true,
		Clock:   likes.ClockAt(start, 1),
		LikedAt: start,
	}
}

// start is the instant of the tests' operations.
var start = time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)

// commit issues the writes, which must succeed.
func commit(tb testing.TB, s *sqlite.Store, writes ...store.Write) []store.Written {
	tb.Helper()
	out := make([]store.Written, len(writes))
	require.NoError(tb, s.Commit(tb.Context(), store.Commit{Writes: writes}, out))
	return out
}

// requireExact walks over everything and wants no drift.
func requireExact(tb testing.TB, s *sqlite.Store) (checked int) {
	tb.Helper()
	var after store.Key
	for {
		a, err := s.Audit(tb.Context(), after, 500)
		require.NoError(tb, err)
		require.Empty(tb, a.Drifts)
		checked += a.Checked
		if a.Next == (store.Key{}) {
			return checked
		}
		after = a.Next
	}
}

// count reads the likes of post 1.
func count(tb testing.TB, s *sqlite.Store) int64 {
	tb.Helper()
	out := make([]store.CountRow, 1)
	require.NoError(tb, s.Counts(tb.Context(), likes.Likes, []likes.Item{{Type: 1, ID: 1}}, out))
	return out[0].N
}
