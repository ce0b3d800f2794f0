package export

import (
	"bufio"
	"io"
	"strconv"
	"time"

	"likectl/pkg/likes"
)

// row is one liked edge as it is written.
type row struct {
	edge    likes.Edge
	likedAt time.Time
	// itemType is the name of the edge's item type, which needs no quotes
	// anywhere (likes.NewItemTypes).
	itemType string
}

// sink writes rows in one form.
type sink interface {
	add(rows []row) error
	// close completes the form. Without it the output must not look complete,
	// as far as the form knows an end.
	close() error
}

func newSink(out io.Writer, f Format) (sink, error) {
	switch f {
	case CSV:
		return &lines{out: bufio.NewWriterSize(out, bufferSize), header: csvHeader, line: csvLine}, nil
	case JSONL:
		return &lines{out: bufio.NewWriterSize(out, bufferSize), line: jsonLine}, nil
	case Parquet:
		return newParquet(out, rowsPerGroup), nil
	default:
		return nil, likes.Errorf(likes.ErrInvalid, "format %q, want csv, jsonl or parquet", f)
	}
}

// bufferSize makes few, large writes of many lines.
const bufferSize = 256 << 10

// lines is the sink of the forms with a line per row.
type lines struct {
	out    *bufio.Writer
	header string // "" once it is written
	line   func(b []byte, r *row) []byte
	buf    []byte
}

func (l *lines) begin() error {
	_, err := l.out.WriteString(l.header)
	l.header = ""
	return err
}

func (l *lines) add(rows []row) error {
	if err := l.begin(); err != nil {
		return err
	}
	for i := range rows {
		l.buf = l.line(l.buf[:0], &rows[i])
		if _, err := l.out.Write(l.buf); err != nil {
			return err
		}
	}
	return nil
}

func (l *lines) close() error {
	if err := l.begin(); err != nil {
		return err
	}
	return l.out.Flush()
}

// timeLayout is RFC 3339 with all the microseconds that a store keeps.
const timeLayout = "2006-01-02T15:04:05.999999Z07:00"

func appendTime(b []byte, t time.Time) []byte { return t.UTC().AppendFormat(b, timeLayout) }

const csvHeader = "user_id,item_type,item_id,liked_at,counter\n"

func csvLine(b []byte, r *row) []byte {
	b = strconv.AppendInt(b, int64(r.edge.User), 10)
	b = append(b, ',')
	b = append(b, r.itemType...)
	b = append(b, ',')
	b = strconv.AppendInt(b, int64(r.edge.Item.ID), 10)
	b = append(b, ',')
	b = appendTime(b, r.likedAt)
	b = append(b, ',')
	b = append(b, r.edge.Counter.String()...)
	return append(b, '\n')
}

// jsonLine writes ids as strings: 64-bit numbers do not survive JavaScript.
func jsonLine(b []byte, r *row) []byte {
	b = append(b, `{"user_id":"`...)
	b = strconv.AppendInt(b, int64(r.edge.User), 10)
	b = append(b, `","item_type":"`...)
	b = append(b, r.itemType...)
	b = append(b, `","item_id":"`...)
	b = strconv.AppendInt(b, int64(r.edge.Item.ID), 10)
	b = append(b, `","liked_at":"`...)
	b = appendTime(b, r.likedAt)
	b = append(b, `","counter":"`...)
	b = append(b, r.edge.Counter.String()...)
	return append(b, "\"}\n"...)
}
