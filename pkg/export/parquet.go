package export

import (
	"io"

	"github.com/parquet-go/parquet-go"
)

// rowsPerGroup is how many rows share a row group, the part of a Parquet file
// that one thread of a reader takes. Readers advise 100,000 to a million
// (DuckDB, "Parquet tips"); fewer need less memory here, since a group is held,
// compressed, until it is whole: some 3 MB.
const rowsPerGroup = 1 << 17

// likeRow is the schema of the file. Ids and times are neighbours of each other
// in the order of the walk, which is what delta encoding is for.
type likeRow struct {
	UserID   int64  `parquet:"user_id,delta,zstd"`
	ItemID   int64  `parquet:"item_id,delta,zstd"`
	ItemType string `parquet:"item_type,dict,zstd"`
	Counter  string `parquet:"counter,dict,zstd"`
	LikedAt  int64  `parquet:"liked_at,timestamp(microsecond),delta,zstd"` // since 1970, in UTC
}

func newLikeRow(r *row) likeRow {
	return likeRow{
		UserID: int64(r.edge.User), ItemID: int64(r.edge.Item.ID), ItemType: r.itemType,
		Counter: r.edge.Counter.String(), LikedAt: r.likedAt.UnixMicro(),
	}
}

// namedRow is the schema of an export with pseudonyms.
type namedRow struct {
	Pseudonym string `parquet:"pseudonym,zstd"`
	ItemID    int64  `parquet:"item_id,delta,zstd"`
	ItemType  string `parquet:"item_type,dict,zstd"`
	Counter   string `parquet:"counter,dict,zstd"`
	LikedAt   int64  `parquet:"liked_at,timestamp(microsecond),delta,zstd"`
}

func newNamedRow(r *row) namedRow {
	return namedRow{
		Pseudonym: string(r.name[:]), ItemID: int64(r.edge.Item.ID), ItemType: r.itemType,
		Counter: r.edge.Counter.String(), LikedAt: r.likedAt.UnixMicro(),
	}
}

// parquetSink writes Apache Parquet. A file of it is complete by its footer,
// which is written last: no reader takes one that broke off for a whole one.
type parquetSink[T any] struct {
	out   *parquet.GenericWriter[T]
	rowOf func(*row) T
	rows  []T
}

func newParquet[T any](out io.Writer, rowOf func(*row) T) *parquetSink[T] {
	return &parquetSink[T]{rowOf: rowOf, out: parquet.NewGenericWriter[T](out,
		parquet.MaxRowsPerRowGroup(rowsPerGroup), parquet.WriteBufferSize(bufferSize))}
}

func (p *parquetSink[T]) add(rows []row) error {
	p.rows = p.rows[:0]
	for i := range rows {
		p.rows = append(p.rows, p.rowOf(&rows[i]))
	}
	_, err := p.out.Write(p.rows)
	return err
}

func (p *parquetSink[T]) close() error { return p.out.Close() }
