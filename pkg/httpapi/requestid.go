package httpapi

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strconv"
	"sync/atomic"
)

// requestIDs names requests: a random part per process and a running number.
type requestIDs struct {
	prefix string
	last   *atomic.Uint64
}

func newRequestIDs() requestIDs {
	var b [6]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return requestIDs{prefix: hex.EncodeToString(b[:]) + "-", last: new(atomic.Uint64)}
}

// of returns the id that the client or a proxy gave the request, if it is fit
// for a log line, else a new one.
func (ids requestIDs) of(r *http.Request) string {
	if given := r.Header["X-Request-Id"]; len(given) == 1 && validRequestID(given[0]) {
		return given[0]
	}
	var b [32]byte
	return string(strconv.AppendUint(append(b[:0], ids.prefix...), ids.last.Add(1), 36))
}

func validRequestID(s string) bool {
	const longest = 64
	if s == "" || len(s) > longest {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}
