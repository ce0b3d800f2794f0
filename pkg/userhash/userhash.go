// Package userhash makes the names under which erased users are remembered: a
// keyed hash of a user's id. Ids are small numbers that anybody can enumerate, so
// a hash without a key would be the id in other letters; with one, only who has
// the store can ask whether a hash is a user's.
package userhash

import (
	"encoding/binary"

	"github.com/dchest/siphash"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

// Key is a store's key. It never changes, since the hashes outlive the ids.
type Key [16]byte

// Hash returns SipHash-2-4 with 128 bits (Aumasson and Bernstein,
// https://www.aumasson.jp/siphash/siphash.pdf) of the id's eight bytes, key, id
// and result in little-endian order as in the paper. It does not allocate.
func (k Key) Hash(user likes.UserID) store.UserHash {
	var id [8]byte
	binary.LittleEndian.PutUint64(id[:], uint64(user)) //nolint:gosec // the bits are the id
	low, high := siphash.Hash128(binary.LittleEndian.Uint64(k[:8]), binary.LittleEndian.Uint64(k[8:]), id[:])
	var h store.UserHash
	binary.LittleEndian.PutUint64(h[:8], low)
	binary.LittleEndian.PutUint64(h[8:], high)
	return h
}
