package export

import (
	"strconv"
	"time"

	"likectl/pkg/ingest"
	"likectl/pkg/likes"
)

// encoder writes one form of import files.
type encoder interface {
	// header is what the file begins with.
	header() string
	// line appends an edge; typeName is the name of its item type, which needs
	// no quotes anywhere (likes.NewItemTypes).
	line(b []byte, m likes.Member, typeName string) []byte
}

func encoderOf(f ingest.Format) (encoder, error) {
	switch f {
	case ingest.CSV:
		return csvEncoder{}, nil
	case ingest.JSONL:
		return jsonEncoder{}, nil
	case ingest.Auto:
	}
	return nil, likes.Errorf(likes.ErrInvalid, "format %q, want csv or jsonl", f)
}

// timeLayout is RFC 3339 with all the microseconds that a store keeps.
const timeLayout = "2006-01-02T15:04:05.999999Z07:00"

func appendTime(b []byte, t time.Time) []byte { return t.UTC().AppendFormat(b, timeLayout) }

type csvEncoder struct{}

func (csvEncoder) header() string { return "user_id,item_type,item_id,liked_at,counter\n" }

func (csvEncoder) line(b []byte, m likes.Member, typeName string) []byte {
	b = strconv.AppendInt(b, int64(m.Edge.User), 10)
	b = append(b, ',')
	b = append(b, typeName...)
	b = append(b, ',')
	b = strconv.AppendInt(b, int64(m.Edge.Item.ID), 10)
	b = append(b, ',')
	b = appendTime(b, m.LikedAt)
	b = append(b, ',')
	b = append(b, m.Edge.Counter.String()...)
	return append(b, '\n')
}

// jsonEncoder writes ids as strings: 64-bit numbers do not survive JavaScript.
type jsonEncoder struct{}

func (jsonEncoder) header() string { return "" }

func (jsonEncoder) line(b []byte, m likes.Member, typeName string) []byte {
	b = append(b, `{"user_id":"`...)
	b = strconv.AppendInt(b, int64(m.Edge.User), 10)
	b = append(b, `","item_type":"`...)
	b = append(b, typeName...)
	b = append(b, `","item_id":"`...)
	b = strconv.AppendInt(b, int64(m.Edge.Item.ID), 10)
	b = append(b, `","liked_at":"`...)
	b = appendTime(b, m.LikedAt)
	b = append(b, `","counter":"`...)
	b = append(b, m.Edge.Counter.String()...)
	return append(b, "\"}\n"...)
}
