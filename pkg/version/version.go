// Package version encodes the state that an operation left behind as the opaque
// token of the headers Like-Version and Like-Min-Version.
//
// A token is base64url without padding of
//
//	1 byte    format, 1
//	2 bytes   counter   (all numbers big endian)
//	2 bytes   item type
//	8 bytes   item id
//	8 bytes   user id
//	8 bytes   epoch
//	8 bytes   clock
//	0 to 128  mark: where the operation is in the tier's log
//	16 bytes  tag: HMAC-SHA-256 of all before, truncated
//
// The tag is there because a clock is an order: whoever could write one himself
// could raise the clock of his edge to the end of time, and make reads wait for
// what will never come. Truncation to half is RFC 2104's (section 5) lower bound.
// The token hides nothing; it names the client's own edge.
package version

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash"
	"sync"

	"likectl/pkg/likes"
)

const (
	// MaxMark is the longest mark of a version, in bytes.
	MaxMark = 128
	// MaxToken is the longest token, in characters.
	MaxToken = (maxRaw*8 + 5) / 6

	format  = 1
	bodyLen = 1 + 2 + 2 + 4*8
	tagLen  = 16
	maxRaw  = bodyLen + MaxMark + tagLen

	// secretSize is the length of the secret that the key is derived from.
	secretSize = 32
	// label keeps the key apart from every other one made of the same secret.
	label = "likectl version token 1"
)

// encoding is strict and unpadded: of one version there is one spelling.
var encoding = base64.RawURLEncoding.Strict()

// Codec encodes and decodes tokens with one key. It is safe for concurrent use.
type Codec struct {
	scratch sync.Pool // of *scratch
}

// scratch is what one encoding or decoding needs.
type scratch struct {
	mac hash.Hash
	raw []byte
	sum []byte
}

// New returns a codec whose key is derived (HKDF, RFC 5869) from the 32-byte
// secret, so that the tokens of one data folder are good in every process that
// uses it. Another length is ErrInvalid.
func New(secret []byte) (*Codec, error) {
	if len(secret) != secretSize {
		return nil, likes.Errorf(likes.ErrInvalid, "secret has %d bytes, want %d", len(secret), secretSize)
	}
	key, err := hkdf.Key(sha256.New, secret, nil, label, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive version key: %w", err)
	}
	c := &Codec{}
	c.scratch.New = func() any {
		return &scratch{mac: hmac.New(sha256.New, key), raw: make([]byte, 0, maxRaw), sum: make([]byte, 0, sha256.Size)}
	}
	return c, nil
}

func (s *scratch) tag(body []byte) []byte {
	s.mac.Reset()
	s.mac.Write(body)
	s.sum = s.mac.Sum(s.sum[:0])
	return s.sum[:tagLen]
}

// Append appends the token of a version. The error is ErrInvalid for a version
// that Decode would refuse; b is returned as it was then.
func (c *Codec) Append(b []byte, v likes.Version) ([]byte, error) {
	if err := check(v); err != nil {
		return b, err
	}
	s, _ := c.scratch.Get().(*scratch)
	defer c.scratch.Put(s)
	r := s.raw[:0]
	r = append(r, format)
	r = binary.BigEndian.AppendUint16(r, uint16(v.Edge.Counter))
	r = binary.BigEndian.AppendUint16(r, uint16(v.Edge.Item.Type))
	r = binary.BigEndian.AppendUint64(r, uint64(v.Edge.Item.ID))
	r = binary.BigEndian.AppendUint64(r, uint64(v.Edge.User))
	r = binary.BigEndian.AppendUint64(r, uint64(v.Epoch))
	r = binary.BigEndian.AppendUint64(r, uint64(v.Clock))
	r = append(r, v.Mark...)
	r = append(r, s.tag(r)...)
	return encoding.AppendEncode(b, r), nil
}

// Decode returns the version of a token, or ErrInvalid for everything that
// Append did not make with the same key.
func (c *Codec) Decode(token string) (likes.Version, error) {
	n := encoding.DecodedLen(len(token))
	if n < bodyLen+tagLen || n > maxRaw {
		return likes.Version{}, errToken()
	}
	s, _ := c.scratch.Get().(*scratch)
	defer c.scratch.Put(s)
	r, err := encoding.AppendDecode(s.raw[:0], []byte(token))
	// The decoder skips line breaks, so a shorter result had some.
	if err != nil || len(r) != n || r[0] != format {
		return likes.Version{}, errToken()
	}
	body, tag := r[:n-tagLen], r[n-tagLen:]
	if !hmac.Equal(tag, s.tag(body)) {
		return likes.Version{}, errToken()
	}
	v := likes.Version{
		Edge: likes.Edge{
			Counter: likes.Counter(binary.BigEndian.Uint16(body[1:])),
			Item: likes.Item{
				Type: likes.ItemType(binary.BigEndian.Uint16(body[3:])),
				ID:   likes.ItemID(binary.BigEndian.Uint64(body[5:])),
			},
			User: likes.UserID(binary.BigEndian.Uint64(body[13:])),
		},
		Epoch: likes.Epoch(binary.BigEndian.Uint64(body[21:])),
		Clock: likes.Clock(binary.BigEndian.Uint64(body[29:])),
		Mark:  likes.Mark(body[bodyLen:]),
	}
	return v, check(v)
}

// check returns ErrInvalid for a version that no operation can have left.
func check(v likes.Version) error {
	switch {
	case v.Clock < 0 || v.Epoch < 0:
		return likes.Errorf(likes.ErrInvalid, "version: clock %d or epoch %d is negative", v.Clock, v.Epoch)
	case len(v.Mark) > MaxMark:
		return likes.Errorf(likes.ErrInvalid, "version: mark has %d bytes, at most %d fit", len(v.Mark), MaxMark)
	default:
		return v.Edge.Validate()
	}
}

func errToken() error {
	return likes.Errorf(likes.ErrInvalid, "version token is not one of this service's: send back what Like-Version said, unchanged")
}
