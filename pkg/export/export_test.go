package export_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"likectl/pkg/export"
	"likectl/pkg/ingest"
	"likectl/pkg/likes"
	"likectl/pkg/memory"
	"likectl/pkg/store"
	"likectl/pkg/store/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "likes.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// fill commits edges of both counters, some of them taken back, some liked long
// before there were clocks, and returns the liked ones in key order. User 1 has
// more than a page.
func fill(t *testing.T, s store.Edges) (liked []likes.Member) {
	t.Helper()
	random := rand.New(rand.NewPCG(5, 6))
	began := time.Date(2024, 2, 29, 23, 59, 59, 123456000, time.UTC)
	var ws []store.Write
	for n := range 12_000 { // several steps of a walk
		e := likes.Edge{Counter: likes.Likes, User: likes.UserID(1 + random.IntN(3)), Item: likes.Item{Type: 1, ID: likes.ItemID(n + 1)}}
		if n%5 == 0 {
			e.Counter, e.Item.Type = likes.Saves, 2
		}
		if n == 7 {
			e.User, e.Item.ID = 1<<63-1, 1<<63-1
		}
		w := store.Write{Edge: e, Liked: random.IntN(4) > 0, LikedAt: began.Add(time.Duration(n*997) * time.Millisecond)}
		if n%50 == 1 {
			w.LikedAt = time.Date(1999, 12, 31, 0, 0, 0, n*1000, time.UTC)
		}
		w.Clock = max(likes.ClockAt(w.LikedAt, 3), 1)
		ws = append(ws, w)
	}
	slices.SortFunc(ws, func(a, b store.Write) int { return a.Edge.Compare(b.Edge) })
	for part := range slices.Chunk(ws, 1000) {
		require.NoError(t, s.Commit(t.Context(), store.Commit{Writes: part}, make([]store.Written, len(part))))
	}
	for _, w := range ws {
		if w.Liked {
			liked = append(liked, likes.Member{Edge: w.Edge, LikedAt: w.LikedAt})
		}
	}
	return liked
}

func run(t *testing.T, s store.Walker, c export.Config) string {
	t.Helper()
	var out bytes.Buffer
	c.Types = likes.DefaultItemTypes()
	e, err := export.New(s, &out, c)
	require.NoError(t, err)
	sum, err := e.Run(t.Context())
	require.NoError(t, err)
	done, _ := e.Progress()
	require.Equal(t, sum.Edges, done)
	require.Equal(t, sum.Edges, sum.ByCounter[likes.Likes]+sum.ByCounter[likes.Saves])
	return out.String()
}

// read imports a text into the naive service and returns its lines' edges.
func read(t *testing.T, text string) (all []likes.Member, into *memory.Service) {
	t.Helper()
	r, err := ingest.OpenReader(strings.NewReader(text), ingest.ReaderConfig{Types: likes.DefaultItemTypes()})
	require.NoError(t, err)
	into = memory.New()
	for {
		m, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, into
		}
		require.NoError(t, err)
		require.Equal(t, likes.Set, m.Op)
		all = append(all, likes.Member{Edge: m.Edge, LikedAt: m.LikedAt})
		require.NoError(t, into.Apply(t.Context(), []likes.Mutation{m})[0].Err)
	}
}

func TestImportReadsWhatExportWrites(t *testing.T) {
	s := open(t)
	want := fill(t, s)
	for _, f := range []export.Format{export.CSV, export.JSONL} {
		text := run(t, s, export.Config{Format: f})
		got, into := read(t, text)
		require.Equal(t, want, got, f)
		for _, m := range want {
			has := into.Has(t.Context(), m.Edge.Counter, m.Edge.User, []likes.Item{m.Edge.Item}, nil)[0]
			require.True(t, has.Liked)
			require.Equal(t, m.LikedAt, has.LikedAt)
			rows := make([]store.CountRow, 1)
			require.NoError(t, s.Counts(t.Context(), m.Edge.Counter, []likes.Item{m.Edge.Item}, rows))
			require.Equal(t, rows[0].N, into.Counts(t.Context(), m.Edge.Counter, []likes.Item{m.Edge.Item}, nil)[0].N)
		}
	}
}

func TestParts(t *testing.T) {
	s := open(t)
	all := fill(t, s)
	for _, c := range []export.Config{
		{Counter: likes.Likes},
		{Counter: likes.Saves},
		{User: 1},
		{User: 1, Counter: likes.Saves},
		{User: 1<<63 - 1},
		{User: 77},
	} {
		t.Run(fmt.Sprintf("counter %d user %d", c.Counter, c.User), func(t *testing.T) {
			want := []likes.Member{}
			for _, m := range all {
				if (c.Counter == 0 || m.Edge.Counter == c.Counter) && (c.User == 0 || m.Edge.User == c.User) {
					want = append(want, m)
				}
			}
			c.Format = export.CSV
			got, _ := read(t, run(t, s, c))
			require.ElementsMatch(t, want, got)
		})
	}
}

func TestAnEmptyStoreGivesAHeader(t *testing.T) {
	require.Equal(t, "user_id,item_type,item_id,liked_at,counter\n", run(t, open(t), export.Config{Format: export.CSV}))
	require.Empty(t, run(t, open(t), export.Config{Format: export.JSONL}))
}

func TestBadConfigurations(t *testing.T) {
	for _, c := range []export.Config{{}, {Format: "xml"}, {Format: export.CSV, User: -1}} {
		_, err := export.New(open(t), io.Discard, c)
		require.ErrorIs(t, err, likes.ErrInvalid)
	}
}

func TestATypeWithoutANameEndsTheExport(t *testing.T) {
	s := open(t)
	fill(t, s)
	types, err := likes.NewItemTypes(map[string]likes.ItemType{"post": 1})
	require.NoError(t, err)
	e, err := export.New(s, io.Discard, export.Config{Format: export.CSV, Types: types})
	require.NoError(t, err)
	_, err = e.Run(t.Context())
	require.ErrorContains(t, err, "no name for item type 2")
	require.ErrorContains(t, err, "items.types")
}

// flaky fails every other read.
type flaky struct {
	*sqlite.Store
	n int
}

func (f *flaky) WalkEdges(ctx context.Context, after likes.Edge, limit int) (store.EdgePage, error) {
	if f.n++; f.n%2 == 1 {
		return store.EdgePage{}, likes.Errorf(likes.ErrUnavailable, "away")
	}
	return f.Store.WalkEdges(ctx, after, limit)
}

func TestAStoreThatIsAwayForAMomentLosesNothing(t *testing.T) {
	s := open(t)
	want := fill(t, s)
	got, _ := read(t, run(t, &flaky{Store: s}, export.Config{Format: export.JSONL}))
	require.Equal(t, want, got)
}

// full fails after some bytes, as a disk does.
type full struct{ left int }

func (f *full) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

func TestAFullDiskIsAnError(t *testing.T) {
	s := open(t)
	fill(t, s)
	for _, left := range []int{0, 100} {
		e, err := export.New(s, &full{left}, export.Config{Format: export.CSV, Types: likes.DefaultItemTypes()})
		require.NoError(t, err)
		_, err = e.Run(t.Context())
		require.ErrorContains(t, err, "disk full")
	}
}

func TestFileAppearsWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.csv")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o644))
	text := func() string {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(b)
	}
	f, err := export.Create(path)
	require.NoError(t, err)
	_, err = io.WriteString(f, "new")
	require.NoError(t, err)
	require.Equal(t, "old", text())
	require.NoError(t, f.Discard())
	require.Equal(t, "old", text())

	f, err = export.Create(path)
	require.NoError(t, err)
	_, err = io.WriteString(f, "new")
	require.NoError(t, err)
	require.NoError(t, f.Commit())
	require.Equal(t, "new", text())
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing else is left")

	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(path, link))
	f, err = export.Create(link)
	require.NoError(t, err)
	require.NoError(t, f.Commit())
	require.Empty(t, text(), "the link's target is written, the link stays")

	_, err = export.Create(dir)
	require.ErrorContains(t, err, "is a folder")
	_, err = export.Create(filepath.Join(dir, "nowhere", "a.csv"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestADeviceIsNotReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "null")
	require.NoError(t, os.Symlink(os.DevNull, path))
	for _, end := range []func(*export.File) error{(*export.File).Commit, (*export.File).Discard} {
		f, err := export.Create(path)
		require.NoError(t, err)
		_, err = io.WriteString(f, "text")
		require.NoError(t, err)
		require.NoError(t, end(f))
	}
	info, err := os.Stat(os.DevNull)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeDevice)
}
