package workload

import (
	"bytes"
	"math/rand/v2"
	"strconv"

	"likectl/benchmarks/load"
)

// Target is where requests go and in whose name.
type Target struct {
	// Host is the Host header, Token a service token, ItemType the type of all
	// items.
	Host, Token, ItemType string
}

// source makes the requests of one connection.
type source struct {
	target Target
	mix    Mix
	total  float64
	pick   picker
	recent recent
	body   []byte
	liked  bool // what the write in flight asks for
}

var _ load.Source = (*source)(nil)

// NewSource returns the source of a connection: the same seed and connection make the
// same requests, as long as the answers are the same.
func NewSource(t Target, mix Mix, of Population, seed uint64, connection int) load.Source {
	s := &source{target: t, mix: mix}
	s.pick = newPicker(mix, of, rand.New(rand.NewPCG(seed, uint64(connection)+1))) //nolint:gosec // a workload, to be repeated
	for _, w := range mix.Weights {
		s.total += w
	}
	return s
}

// Next implements [load.Source].
func (s *source) Next(b []byte) ([]byte, load.Kind) {
	kind := s.kind()
	switch kind {
	case Write:
		return s.write(b), kind
	case Batch:
		return s.batch(b), kind
	case Count:
		b = append(b, "GET /v1/count?item_type="...)
		b = append(append(b, s.target.ItemType...), "&item_id="...)
		return s.head(strconv.AppendInt(b, s.pick.item(), 10), nil), kind
	case Counts:
		s.body = append(s.body[:0], `{"items":[`...)
		for i := range page {
			s.body = s.item(comma(s.body, i), s.pick.item())
			s.body = append(s.body, '}')
		}
		s.body = append(s.body, `]}`...)
		return s.head(append(b, "POST /v1/counts"...), s.body), kind
	default:
		s.body = append(s.body[:0], `{"user_id":"`...)
		s.body = append(strconv.AppendInt(s.body, s.pick.user(), 10), `","item_type":"`...)
		s.body = append(append(s.body, s.target.ItemType...), `","item_ids":[`...)
		for i := range page {
			s.body = append(comma(s.body, i), '"')
			s.body = append(strconv.AppendInt(s.body, s.pick.item(), 10), '"')
		}
		s.body = append(s.body, `]}`...)
		return s.head(append(b, "POST /v1/has_liked"...), s.body), Has
	}
}

// kind draws a kind by the weights.
func (s *source) kind() load.Kind {
	x := s.pick.r.Float64() * s.total
	for k, w := range s.mix.Weights {
		if x -= w; x < 0 {
			return load.Kind(k)
		}
	}
	return Write
}

// edge draws what a write is about.
func (s *source) edge() (e edge, liked bool) {
	switch x := s.pick.r.Float64(); {
	case x < s.mix.Unlike:
		if e, ok := s.recent.take(s.pick.r); ok {
			return e, false
		}
	case x < s.mix.Unlike+s.mix.Repeat:
		if e, ok := s.recent.any(s.pick.r); ok {
			return e, true
		}
	}
	e = edge{s.pick.user(), s.pick.liked()}
	s.recent.add(e)
	return e, true
}

func (s *source) write(b []byte) []byte {
	var e edge
	e, s.liked = s.edge()
	method := "POST /v1/like"
	if !s.liked {
		method = "DELETE /v1/like"
	}
	s.body = s.item(s.body[:0], e.item)
	s.body = append(s.body, `,"user_id":"`...)
	s.body = append(strconv.AppendInt(s.body, e.user, 10), `"}`...)
	return s.head(append(b, method...), s.body)
}

func (s *source) batch(b []byte) []byte {
	s.body = append(s.body[:0], `{"ops":[`...)
	for i := range page {
		e, liked := s.edge()
		s.body = s.item(comma(s.body, i), e.item)
		s.body = append(s.body, `,"user_id":"`...)
		s.body = append(strconv.AppendInt(s.body, e.user, 10), `","action":"`...)
		if !liked {
			s.body = append(s.body, "un"...)
		}
		s.body = append(s.body, `like"}`...)
	}
	s.body = append(s.body, `]}`...)
	return s.head(append(b, "POST /v1/likes:batch"...), s.body)
}

// item opens an object that names an item.
func (s *source) item(b []byte, id int64) []byte {
	b = append(b, `{"item_id":"`...)
	b = append(strconv.AppendInt(b, id, 10), `","item_type":"`...)
	return append(append(b, s.target.ItemType...), '"')
}

func comma(b []byte, i int) []byte {
	if i > 0 {
		return append(b, ',')
	}
	return b
}

// head ends the request line and appends the headers and the body.
func (s *source) head(b, body []byte) []byte {
	b = append(append(b, " HTTP/1.1\r\nHost: "...), s.target.Host...)
	b = append(append(b, "\r\nAuthorization: Bearer "...), s.target.Token...)
	if body != nil {
		b = append(b, "\r\nContent-Type: application/json\r\nContent-Length: "...)
		b = strconv.AppendInt(b, int64(len(body)), 10)
	}
	return append(append(b, "\r\n\r\n"...), body...)
}

var (
	entryErrors = []byte(`"error`)
	userLiked   = [...][]byte{[]byte(`"user_liked":false`), []byte(`"user_liked":true`)}
)

// Answered implements [load.Source]: an answer is right if its status is 200, no
// entry of it failed, and a write left what it asked for.
func (s *source) Answered(k load.Kind, status int, body []byte) string {
	switch {
	case status != 200:
		return "status"
	case bytes.Contains(body, entryErrors):
		return "entry"
	case k == Write && !bytes.Contains(body, userLiked[number(s.liked)]):
		return "answer"
	default:
		return ""
	}
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}
