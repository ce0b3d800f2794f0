package export_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"likectl/pkg/export"
	"likectl/pkg/ingest"
	"likectl/pkg/likes"
	"likectl/pkg/store"
)

// parquetRow is what a reader that knows nothing of this project asks for.
type parquetRow struct {
	UserID   int64     `parquet:"user_id"`
	ItemID   int64     `parquet:"item_id"`
	ItemType string    `parquet:"item_type"`
	Counter  string    `parquet:"counter"`
	LikedAt  time.Time `parquet:"liked_at,timestamp(microsecond)"`
}

func readParquet(t *testing.T, text string) []parquetRow {
	t.Helper()
	rows, err := parquet.Read[parquetRow](strings.NewReader(text), int64(len(text)))
	require.NoError(t, err)
	return rows
}

func TestParquetHoldsWhatCSVHolds(t *testing.T) {
	s := open(t)
	fill(t, s)
	types := likes.DefaultItemTypes()
	for _, c := range []export.Config{{}, {Counter: likes.Saves}, {User: 1}} {
		c.Format = export.CSV
		want, _ := read(t, run(t, s, c))
		c.Format = export.Parquet
		text := run(t, s, c)
		got := []likes.Member{}
		for _, r := range readParquet(t, text) {
			kind, ok := types.Type(r.ItemType)
			require.True(t, ok, r.ItemType)
			counter, err := likes.ParseSetCounter(r.Counter)
			require.NoError(t, err)
			item := likes.Item{Type: kind, ID: likes.ItemID(r.ItemID)}
			got = append(got, likes.Member{Edge: likes.Edge{Counter: counter, Item: item, User: likes.UserID(r.UserID)}, LikedAt: r.LikedAt.UTC()})
		}
		require.Equal(t, want, got)
		require.NotEmpty(t, got)
	}
}

func TestParquetSaysWhatItsColumnsAre(t *testing.T) {
	text := run(t, open(t), export.Config{Format: export.Parquet})
	f, err := parquet.OpenFile(strings.NewReader(text), int64(len(text)))
	require.NoError(t, err)
	require.Zero(t, f.NumRows(), "an empty store gives a whole file without rows")
	require.Equal(t, `message likeRow {
	required int64 user_id (INT(64,true));
	required int64 item_id (INT(64,true));
	required binary item_type (STRING);
	required binary counter (STRING);
	required int64 liked_at (TIMESTAMP(isAdjustedToUTC=true,unit=MICROS));
}`, f.Schema().String())
}

// many is a store with more edges than a test wants to write to a disk.
type many struct {
	store.Walker
	edges int
	step  func(done int)
}

func (m *many) EstimateEdges(context.Context, likes.Counter) (int64, error) {
	return int64(m.edges), nil
}

func (m *many) WalkEdges(_ context.Context, after likes.Edge, limit int) (page store.EdgePage, err error) {
	done := int(after.User)
	m.step(done)
	for user := done + 1; user <= min(done+limit, m.edges); user++ {
		page.Next = likes.Edge{Counter: likes.Likes, Item: likes.Item{Type: 1, ID: 7}, User: likes.UserID(user)}
		at := time.UnixMicro(1_700_000_000_000_000 + rand.Int64N(1e12))
		page.Members = append(page.Members, likes.Member{Edge: page.Next, LikedAt: at})
	}
	if done+limit >= m.edges {
		page.Next = likes.Edge{}
	}
	return page, nil
}

// TestParquetIsWrittenGroupByGroup: of a file without end, a row group is held
// and no more.
func TestParquetIsWrittenGroupByGroup(t *testing.T) {
	var out bytes.Buffer
	const group = 1 << 17
	m := &many{edges: 3*group + 1000, step: func(done int) {
		// A row has 5 bytes or more: its time alone has 40 random bits. What is
		// left over of the write buffer waits.
		require.GreaterOrEqual(t, out.Len(), 3*group*max(0, (done-1)/group), "after %d edges", done)
	}}
	e, err := export.New(m, &out, export.Config{Format: export.Parquet, Types: likes.DefaultItemTypes()})
	require.NoError(t, err)
	_, err = e.Run(t.Context())
	require.NoError(t, err)
	f, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	require.NoError(t, err)
	require.EqualValues(t, m.edges, f.NumRows())
	require.Len(t, f.RowGroups(), 4)
}

// TestParquetThatBrokeOffIsRefused by readers, wherever it broke off.
func TestParquetThatBrokeOffIsRefused(t *testing.T) {
	var out bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	m := &many{edges: 1_000_000, step: func(done int) {
		if done > 200_000 {
			cancel()
		}
	}}
	e, err := export.New(&cancelled{m}, &out, export.Config{Format: export.Parquet, Types: likes.DefaultItemTypes()})
	require.NoError(t, err)
	_, err = e.Run(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.NotZero(t, out.Len())
	_, err = parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	require.Error(t, err)
}

// cancelled answers as a store does whose caller has left.
type cancelled struct{ *many }

func (c *cancelled) WalkEdges(ctx context.Context, after likes.Edge, limit int) (store.EdgePage, error) {
	page, err := c.many.WalkEdges(ctx, after, limit)
	if ctx.Err() != nil {
		return store.EdgePage{}, ctx.Err()
	}
	return page, err
}

func TestImportSaysThatItReadsNoParquet(t *testing.T) {
	text := run(t, open(t), export.Config{Format: export.Parquet})
	_, err := ingest.OpenReader(strings.NewReader(text), ingest.ReaderConfig{Types: likes.DefaultItemTypes()})
	require.ErrorContains(t, err, "Parquet")
}

func TestAFullDiskIsAnErrorOfParquetToo(t *testing.T) {
	s := open(t)
	fill(t, s)
	for _, left := range []int{0, 100} {
		e, err := export.New(s, &full{left}, export.Config{Format: export.Parquet, Types: likes.DefaultItemTypes()})
		require.NoError(t, err)
		_, err = e.Run(t.Context())
		require.ErrorContains(t, err, "disk full")
	}
}

func BenchmarkExport(b *testing.B) {
	for _, f := range []export.Format{export.CSV, export.JSONL, export.Parquet} {
		for name, p := range map[string]*export.Pseudonyms{"ids": nil, "pseudonyms": {Salt: salt()}} {
			b.Run(string(f)+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				m := &many{edges: b.N, step: func(int) {}}
				e, err := export.New(m, io.Discard, export.Config{Format: f, Types: likes.DefaultItemTypes(), Pseudonyms: p})
				require.NoError(b, err)
				_, err = e.Run(b.Context())
				require.NoError(b, err)
			})
		}
	}
}
