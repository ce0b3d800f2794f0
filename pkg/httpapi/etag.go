package httpapi

import (
	"net/http"
	"strconv"
	"strings"
)

// etag returns the entity tag of an item's counts. It is weak (RFC 9110, 8.8.1):
// answers with the same counts differ in as_of, and mean the same.
func (t totals) etag(item int) string {
	b := append(make([]byte, 0, 32), `W/"`...)
	for i := range t.counters {
		if i > 0 {
			b = append(b, '-')
		}
		b = strconv.AppendInt(b, t.counts[i][item].N, 10)
	}
	return string(append(b, '"'))
}

// unchanged makes the answer a 304 if the client already has what the tag names.
// If-None-Match compares weakly (RFC 9110, 13.1.2), and so it does.
func (c *call) unchanged() bool {
	for _, list := range c.r.Header["If-None-Match"] {
		for tag := range strings.SplitSeq(list, ",") { // our tags have no commas
			tag = strings.TrimSpace(tag)
			if tag == "*" || strings.TrimPrefix(tag, "W/") == c.etag[len("W/"):] {
				c.status = http.StatusNotModified
				return true
			}
		}
	}
	return false
}
