package export

import (
	"bufio"
	"io"
	"strconv"
	"time"

	"likectl/pkg/likes"
	"likectl/pkg/pseudonym"
)

// row is one liked edge as it is written.
type row struct {
	edge    likes.Edge
	likedAt time.Time
	// itemType is the name of the edge's item type, which needs no quotes
	// anywhere (likes.NewItemTypes).
	itemType string
	// name is the user's pseudonym, if the export has pseudonyms: then the edge
	// has no user.
	name pseudonym.Name
}

// sink writes rows in one form.
type sink interface {
	add(rows []row) error
	// close completes the form. Without it the output must not look complete,
	// as far as the form knows an end.
	close() error
}

// newSink returns the sink of a format, for rows with a pseudonym in place of the
// user's id or with the id.
func newSink(out io.Writer, f Format, named bool) (sink, error) {
	switch f {
	case CSV:
		l := &lines{out: bufio.NewWriterSize(out, bufferSize), header: csvHeader, line: csvLine}
		if named {
			l.header, l.line = csvNamedHeader, csvNamedLine
		}
		return l, nil
	case JSONL:
		l := &lines{out: bufio.NewWriterSize(out, bufferSize), line: jsonLine}
		if named {
			l.line = jsonNamedLine
		}
		return l, nil
	case Parquet:
		if named {
			return newParquet(out, newNamedRow), nil
		}
		return newParquet(out, newLikeRow), nil
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

const (
	csvHeader = "user_id" + csvColumns
	// The column has another name, so that nobody imports pseudonyms as ids.
	csvNamedHeader = "pseudonym" + csvColumns
	csvColumns     = ",item_type,item_id,liked_at,counter\n"
)

func csvLine(b []byte, r *row) []byte {
	return csvRest(strconv.AppendInt(b, int64(r.edge.User), 10), r)
}

func csvNamedLine(b []byte, r *row) []byte { return csvRest(append(b, r.name[:]...), r) }

func csvRest(b []byte, r *row) []byte {
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
	return jsonRest(strconv.AppendInt(b, int64(r.edge.User), 10), r)
}

func jsonNamedLine(b []byte, r *row) []byte {
	b = append(b, `{"pseudonym":"`...)
	return jsonRest(append(b, r.name[:]...), r)
}

func jsonRest(b []byte, r *row) []byte {
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
