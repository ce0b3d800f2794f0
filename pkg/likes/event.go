package likes

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// EventID names one event of a tally, so that it counts once however often it is
// sent. It is a UUID (RFC 9562) of any version; the zero EventID is none.
type EventID [16]byte

// NewEventID returns an id for an event that came without one: a UUID of version
// 7, the milliseconds since 1970 and 74 random bits. Ids of one moment lie
// together in an index, where random ones would touch a page each.
func NewEventID(now time.Time) EventID {
	var e EventID
	_, _ = rand.Read(e[6:]) // never fails (crypto/rand)
	ms := uint64(max(now.UnixMilli(), 0))
	binary.BigEndian.PutUint16(e[:], uint16(ms>>32))
	binary.BigEndian.PutUint32(e[2:], uint32(ms))
	e[6] = 0x70 | e[6]&0x0f
	e[8] = 0x80 | e[8]&0x3f
	return e
}

// dashes are the places of the dashes in a UUID's text.
const uuidLen, dash1, dash2, dash3, dash4 = 36, 8, 13, 18, 23

// ParseEventID reads a UUID as it stands on the wire: 32 hexadecimal digits of
// either case in groups of 8-4-4-4-12. Everything else (braces, "urn:uuid:", no
// dashes, the nil UUID) is ErrInvalid.
func ParseEventID[T ~string | ~[]byte](s T) (EventID, error) {
	var e EventID
	if len(s) != uuidLen || s[dash1] != '-' || s[dash2] != '-' || s[dash3] != '-' || s[dash4] != '-' {
		return EventID{}, errEvent(s)
	}
	n := 0
	for i := 0; i < uuidLen; i++ {
		if i == dash1 || i == dash2 || i == dash3 || i == dash4 {
			continue
		}
		d, ok := nibble(s[i])
		if !ok {
			return EventID{}, errEvent(s)
		}
		e[n/2] = e[n/2]<<4 | d
		n++
	}
	if e == (EventID{}) {
		return EventID{}, errEvent(s)
	}
	return e, nil
}

func nibble(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	default:
		return 0, false
	}
}

func errEvent[T ~string | ~[]byte](s T) error {
	return Errorf(ErrInvalid, "%q is not an event id: want a UUID, 32 hexadecimal digits as 8-4-4-4-12, not all 0", clip(s))
}

// String returns the id as a UUID in lower case.
func (e EventID) String() string {
	b := make([]byte, 0, uuidLen)
	for i, group := range [...][]byte{e[:4], e[4:6], e[6:8], e[8:10], e[10:]} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, group)
	}
	return string(b)
}
