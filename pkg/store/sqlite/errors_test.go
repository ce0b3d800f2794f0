package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/store/sqlite"
)

// patience bounds every wait for something that must happen.
const patience = 20 * time.Second

func TestOpenKeepsDataAndMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "100% likes? #1.db")
	s := open(t, path)
	commit(t, s, like(1, 1))
	for _, file := range []string{path, path + "-wal"} {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), file)
	}
	require.NoError(t, s.Close())
	require.Equal(t, int64(1), count(t, open(t, path)))
}

func TestSchemaUpMakesAPrivateFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "likes.db")
	_, err := sqlite.SchemaUp(t.Context(), path)
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestInspect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "likes.db")
	s := open(t, path)
	commit(t, s, like(1, 1))
	require.NoError(t, s.Close())
	found, err := sqlite.Inspect(t.Context(), path)
	require.NoError(t, err)
	require.Equal(t, found.Known, found.Schema)
	require.Positive(t, found.Schema)
	require.Regexp(t, `^3\.`, found.Version)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, info.Size(), found.Bytes)
	_, err = sqlite.Inspect(t.Context(), filepath.Join(t.TempDir(), "missing.db"))
	require.ErrorIs(t, err, likes.ErrUnavailable)
}

func TestSchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "likes.db")
	_, err := sqlite.SchemaStatus(t.Context(), path)
	require.ErrorContains(t, err, "no such database yet")
	require.NoFileExists(t, path)

	done, err := sqlite.SchemaUp(t.Context(), path)
	require.NoError(t, err)
	require.Equal(t, "00001_edges.sql", done[0].Name)
	done, err = sqlite.SchemaUp(t.Context(), path)
	require.NoError(t, err)
	require.Empty(t, done)
	status, err := sqlite.SchemaStatus(t.Context(), path)
	require.NoError(t, err)
	require.Equal(t, int64(1), status[0].Version)
	require.WithinDuration(t, time.Now(), status[0].AppliedAt, time.Minute)
}

func TestNewerSchemaIsRefused(t *testing.T) {
	r := newRaw(t)
	commit(t, r.Store, like(1, 1))
	require.NoError(t, r.Close())
	require.NoError(t, r.Exec(t.Context(), "insert into likectl_schema (version_id, is_applied) values (99, 1)"))
	_, err := sqlite.Open(t.Context(), r.path)
	require.ErrorIs(t, err, likes.ErrUnavailable)
	require.ErrorContains(t, err, "has schema 99 and this likectl knows up to 3")
	_, err = sqlite.SchemaStatus(t.Context(), r.path)
	require.ErrorContains(t, err, "has schema 99")

	require.NoError(t, r.Exec(t.Context(), "delete from likectl_schema where version_id = 99"))
	require.Equal(t, int64(1), count(t, open(t, r.path)), "the refused file was not changed")
}

func TestFileThatIsNoDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "likes.db")
	text := strings.Repeat("this is not a database\n", 1000)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	_, err := sqlite.Open(t.Context(), path)
	require.ErrorIs(t, err, likes.ErrUnavailable)
	require.ErrorContains(t, err, "damaged or not a database")
	require.ErrorContains(t, err, ".recover")
	left, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, text, string(left))
}

func TestDamagedPages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "likes.db")
	require.NoError(t, open(t, path).Close())
	schema, err := os.ReadFile(path)
	require.NoError(t, err)
	s := open(t, path)
	var ws []store.Write
	for user := range likes.UserID(1000) {
		ws = append(ws, like(user+1, 1))
	}
	commit(t, s, ws...)
	require.NoError(t, s.Close())
	// All behind the pages of the empty database becomes rubbish.
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Greater(t, len(file), len(schema))
	for i := len(schema); i < len(file); i++ {
		file[i] = 0xa5
	}
	require.NoError(t, os.WriteFile(path, file, 0o600))

	s = open(t, path)
	err = s.Commit(t.Context(), store.Commit{Writes: ws}, make([]store.Written, len(ws)))
	require.ErrorIs(t, err, likes.ErrUnavailable)
	require.ErrorContains(t, err, "nothing was applied")
	require.ErrorContains(t, err, "damaged or not a database")
	_, err = s.Likers(t.Context(), likes.Likes, likes.Item{Type: 1, ID: 1}, 0, 1000)
	require.ErrorIs(t, err, likes.ErrUnavailable)
}

func TestClosedStore(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "likes.db"))
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	err := s.Commit(t.Context(), store.Commit{Writes: []store.Write{like(1, 1)}}, make([]store.Written, 1))
	require.ErrorIs(t, err, likes.ErrUnavailable)
	require.ErrorContains(t, err, "closed")
	err = s.Counts(t.Context(), likes.Likes, []likes.Item{{Type: 1, ID: 1}}, make([]store.CountRow, 1))
	require.ErrorIs(t, err, likes.ErrUnavailable)
}

// lockWriter takes SQLite's write lock from outside and returns what releases it.
func lockWriter(t *testing.T, r raw) (release func()) {
	t.Helper()
	c, err := r.db.Conn(t.Context())
	require.NoError(t, err)
	_, err = c.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	require.NoError(t, err)
	return func() {
		_, err := c.ExecContext(context.Background(), "ROLLBACK")
		require.NoError(t, err)
		require.NoError(t, c.Close())
	}
}

func TestEndOfContext(t *testing.T) {
	r := newRaw(t)
	release := lockWriter(t, r)
	first, endFirst := context.WithCancel(t.Context())
	began := make(chan error, 1)
	go func() {
		began <- r.Commit(first, store.Commit{Writes: []store.Write{like(1, 1)}}, make([]store.Written, 1))
	}()
	require.Eventually(t, r.Writing, patience, time.Millisecond)
	endFirst() // too late: its transaction is on the way

	second, endSecond := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer endSecond()
	err := r.Commit(second, store.Commit{Writes: []store.Write{like(2, 1)}}, make([]store.Written, 1))
	require.ErrorIs(t, err, likes.ErrUnavailable, "it waits for its turn and gives up")
	require.ErrorIs(t, err, context.DeadlineExceeded)

	release()
	require.NoError(t, <-began)
	require.Equal(t, int64(1), count(t, r.Store))
}

func TestLockedByAnotherProgram(t *testing.T) {
	t.Parallel() // it waits for the busy timeout
	r := newRaw(t)
	release := lockWriter(t, r)
	err := r.Commit(t.Context(), store.Commit{Writes: []store.Write{like(1, 1)}}, make([]store.Written, 1))
	require.ErrorIs(t, err, likes.ErrUnavailable)
	require.ErrorContains(t, err, "another program has locked")
	release()
	commit(t, r.Store, like(1, 1))
}

// TestFailedBatchIsRolledBack breaks a batch after its edges were written.
func TestFailedBatchIsRolledBack(t *testing.T) {
	r := newRaw(t)
	require.NoError(t, r.Exec(t.Context(), "alter table likectl_meta rename to away"))
	err := r.Commit(t.Context(), store.Commit{Writes: []store.Write{like(1, 1)}}, make([]store.Written, 1))
	require.ErrorIs(t, err, likes.ErrUnavailable)
	require.ErrorContains(t, err, "no such table")
	require.NoError(t, r.Exec(t.Context(), "alter table away rename to likectl_meta"), "no lock is left behind")
	edges, err := r.Int(t.Context(), "select count(*) from edges")
	require.NoError(t, err)
	require.Zero(t, edges)
	require.False(t, commit(t, r.Store, like(1, 1))[0].Was)
}

// TestReadersDoNotBlockWriters holds a snapshot open across commits.
func TestReadersDoNotBlockWriters(t *testing.T) {
	r := newRaw(t)
	commit(t, r.Store, like(1, 1))
	tx, err := r.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	old := func() (n int64) {
		require.NoError(t, tx.QueryRow("select count from counters").Scan(&n))
		return n
	}
	require.Equal(t, int64(1), old())
	commit(t, r.Store, like(2, 1))
	require.Equal(t, int64(1), old())
	require.Equal(t, int64(2), count(t, r.Store))
	require.NoError(t, tx.Rollback())
}

// TestBatchesOfEverySize crosses the sizes at which statements are split, and
// reads more than one statement holds.
func TestBatchesOfEverySize(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "likes.db"))
	item := likes.ItemID(0)
	for _, size := range []int{1, 2, 3, 7, 64, 255, 1000, 1023, 1024, 1025, 2500} {
		var ws []store.Write
		for range size {
			item++
			ws = append(ws, like(1, item))
		}
		for _, w := range commit(t, s, ws...) {
			require.Equal(t, store.Written{Applied: true, Clock: ws[0].Clock, Count: 1, Version: likes.CountVersion{Epoch: 1, N: 1}}, w)
		}
	}
	items := make([]likes.Item, item)
	for i := range items {
		items[i] = likes.Item{Type: 1, ID: likes.ItemID(i + 1)}
	}
	rows := make([]store.CountRow, len(items))
	require.NoError(t, s.Counts(t.Context(), likes.Likes, items, rows))
	registers := make([]likes.Register, len(items))
	require.NoError(t, s.Registers(t.Context(), likes.Likes, 1, items, registers))
	for i := range items {
		require.Equal(t, int64(1), rows[i].N)
		require.True(t, registers[i].Liked)
	}
	require.Equal(t, len(items), requireExact(t, s))
}

// TestPlans wants every statement to search, never to scan or sort a table.
func TestPlans(t *testing.T) {
	r := newRaw(t)
	for _, statement := range sqlite.Statements(2) {
		for _, detail := range r.plan(t, statement) {
			require.NotContains(t, detail, "TEMP B-TREE", statement)
			for _, table := range []string{"edges", "counters", "tally_events", "blocks", "item_blocks", "follows", "items", "erasures", "e", "c"} {
				require.NotEqual(t, "SCAN "+table, detail, statement)
				require.False(t, strings.HasPrefix(detail, "SCAN "+table+" "), "%s: %s", statement, detail)
			}
		}
	}
}

// plan returns the steps of a statement's query plan.
func (r raw) plan(t *testing.T, statement string) []string {
	t.Helper()
	rows, err := r.db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+strings.ReplaceAll(statement, "?", "1"))
	require.NoError(t, err, statement)
	defer func() { require.NoError(t, rows.Close()) }()
	var steps []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
		steps = append(steps, detail)
	}
	require.NoError(t, rows.Err())
	return steps
}
