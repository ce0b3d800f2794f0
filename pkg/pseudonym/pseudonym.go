// Package pseudonym replaces user ids in what leaves the service for analysis.
//
// A pseudonym is a keyed hash of the id under a salt that only the exporter has
// (HMAC-SHA-256, RFC 2104, cut to 128 bits: among a billion users two share one
// with a probability of 10^-21). An unkeyed hash would hide nothing: ids are
// numbers, and all of them are hashed in minutes. Salts rotate: exports under
// different salts have no pseudonyms in common.
//
// Data with pseudonyms is still personal data (GDPR, article 4(5) and recital
// 26). Whoever has the salt can find everybody; whoever knows a few of the items
// that somebody liked can recognise the pseudonym that liked them, in every
// export, whatever the salt.
package pseudonym

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"time"

	"likectl/pkg/likes"
)

const (
	// SaltSize is the length of a salt in bytes, the key size of its hash.
	SaltSize = sha256.Size
	// Size is the length of a pseudonym: 128 bits in lower-case hex digits.
	Size = 32
)

// Name is a user's pseudonym under one salt.
type Name [Size]byte

// Salt is a key of pseudonyms and when it was made.
type Salt struct {
	key  [SaltSize]byte
	Made time.Time
}

// NewSalt returns a random salt.
func NewSalt(made time.Time) Salt {
	s := Salt{Made: made.UTC().Truncate(time.Second)}
	_, _ = rand.Read(s.key[:]) // never fails (crypto/rand)
	return s
}

// String tells salts apart without giving one away, for messages.
func (s Salt) String() string { return "salt of " + s.Made.Format(time.RFC3339) }

// GoString hides the key from %#v.
func (s Salt) GoString() string { return s.String() }

// Namer names users under one salt. It is not safe for concurrent use.
type Namer struct {
	mac hash.Hash
	sum [sha256.Size]byte
}

// Namer returns a namer of the salt.
func (s Salt) Namer() *Namer { return &Namer{mac: hmac.New(sha256.New, s.key[:])} }

// Name returns a user's pseudonym.
func (n *Namer) Name(user likes.UserID) (name Name) {
	var id [8]byte
	binary.BigEndian.PutUint64(id[:], uint64(user))
	n.mac.Reset()
	n.mac.Write(id[:])
	hex.Encode(name[:], n.mac.Sum(n.sum[:0])[:Size/2])
	return name
}
