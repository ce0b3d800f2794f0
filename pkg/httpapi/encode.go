package httpapi

import (
	"strconv"
	"time"
	"unicode/utf8"

	"likectl/pkg/likes"
)

// appendString appends a JSON string. Only details, cursors and request ids come
// here; everything else that is written needs no escaping by construction.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ' || r == 0x7f:
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			b = utf8.AppendRune(b, r) // bytes that are no UTF-8 arrive as U+FFFD
		}
	}
	return append(b, '"')
}

// appendTime appends an instant as RFC 3339 in UTC.
func appendTime(b []byte, t time.Time) []byte {
	return append(t.UTC().AppendFormat(append(b, '"'), time.RFC3339Nano), '"')
}

func appendBool(b []byte, name string, v bool) []byte {
	b = append(append(append(b, '"'), name...), `":`...)
	return strconv.AppendBool(b, v)
}

// appendID appends an id as a JSON string, since JavaScript rounds numbers above
// 2^53.
func appendID[T ~int64](b []byte, id T) []byte {
	b = append(b, '"')
	return append(strconv.AppendInt(b, int64(id), 10), '"')
}

// appendItemKey appends "type:id", the key of batch answers, in quotes.
func (a *API) appendItemKey(b []byte, item likes.Item) []byte {
	b = append(append(append(b, '"'), a.cfg.Types.Name(item.Type)...), ':')
	return append(strconv.AppendInt(b, int64(item.ID), 10), '"')
}

// words are what an operation on a set counter is called in answers.
type words struct{ did, had, undid, hadNot, now string }

func wordsOf(c likes.Counter) words {
	if c == likes.Saves {
		return words{"saved", "already_saved", "unsaved", "not_saved", "user_saved"}
	}
	return words{"liked", "already_liked", "unliked", "not_liked", "user_liked"}
}

func (w words) status(op likes.Op, o likes.Outcome) string {
	switch {
	case o == likes.Accepted:
		return "accepted"
	case op == likes.Set && o == likes.Changed:
		return w.did
	case op == likes.Set:
		return w.had
	case o == likes.Changed:
		return w.undid
	default:
		return w.hadNot
	}
}

// appendResult appends the answer to a mutation that has no error, to somebody who
// may or may not know the count.
func (a *API) appendResult(b []byte, m likes.Mutation, r likes.Result, shown bool) []byte {
	w := wordsOf(m.Edge.Counter)
	b = append(append(append(b, `{"status":"`...), w.status(m.Op, r.Outcome)...), '"')
	b = appendCountOf(b, r, shown)
	b = appendBool(append(b, ','), w.now, m.Op == likes.Set)
	if a.contract.ExactChanged && r.Outcome != likes.Accepted {
		b = appendBool(append(b, ','), "changed", r.Outcome == likes.Changed)
	}
	return append(b, '}')
}

// appendCountOf appends the count of a result that has one, or that it is hidden.
func appendCountOf(b []byte, r likes.Result, shown bool) []byte {
	switch {
	case r.Outcome == likes.Accepted || r.Count.Err != nil:
		return b
	case !shown:
		return append(b, `,"hidden":true`...)
	}
	b = strconv.AppendInt(append(b, `,"count":`...), r.Count.N, 10)
	return append(likes.AppendShort(append(b, `,"count_formatted":"`...), r.Count.N), '"')
}
