package ingest

import (
	"encoding/binary"
	"errors"

	"github.com/bits-and-blooms/bloom/v3"

	"likectl/pkg/likes"
)

// The filter has 2^29 bits (64 MiB, touched only as it fills) unless the file is
// so long that it would be overfull; then it grows with it up to 1 GiB, enough
// for some thousand million lines. All files of up to 2.5 GB and all pipes have
// the same size, so that the same lines have the same ranks from either.
const (
	minFilterBits = 1 << 29
	maxFilterBits = 1 << 33
	// fileBytesPerBit gives a line of 40 bytes 8 bits, 2.4 % false positives with
	// 4 hashes.
	fileBytesPerBit = 5
	filterHashes    = 4
)

func filterBits(size int64) uint {
	bits := uint(minFilterBits)
	for bits < maxFilterBits && int64(bits) < size/fileBytesPerBit {
		bits *= 2
	}
	return bits
}

// errTooManyTies stands for a line whose rank does not fit a clock.
var errTooManyTies = errors.New("the edge has over 4,095 likes that follow unlikes with the same liked_at; " +
	"only one of these lines can be right, or the input is so long that it must be split")

// ranks gives lines of one edge with equal clocks an order: the line's rank,
// kept in the clock's lower bits. Applied in any order, the register that the
// stores' rule (greatest clock, of equal ones the unlike) leaves is the last
// line's.
//
// Rank 0 goes to the first line of its edge and clock. A later one gets the
// highest rank r so far, or r+1 if it is a like and an unlike has rank r, which
// would win. What has been given is kept in a Bloom filter, so the memory is
// fixed. A false positive can only make a rank higher than needed: every line
// before really is in the filter, so r is never below the ranks given before,
// and the order stands. Same lines, same ranks, false positives included.
type ranks struct {
	filter *bloom.BloomFilter
	key    [29]byte
}

func newRanks(bits uint) *ranks {
	return &ranks{filter: bloom.New(bits, filterHashes)}
}

// What the filter remembers of an edge, a clock and a rank.
const (
	taken   = 0 // a line has it
	unliked = 1 // an unlike has it
)

// rank gives the mutation's clock its rank.
func (k *ranks) rank(m *likes.Mutation) error {
	k.setEdge(m)
	rank := m.Fixed
	if k.testOrAdd(rank, taken) { // the common case is that nobody has rank 0
		for rank.Instance() < likes.MaxInstance && k.test(rank+1, taken) {
			rank++
		}
		if m.Op == likes.Set && k.test(rank, unliked) {
			if rank.Instance() == likes.MaxInstance {
				return errTooManyTies
			}
			rank++
			k.testOrAdd(rank, taken)
		}
	}
	if m.Op == likes.Clear {
		k.testOrAdd(rank, unliked)
	}
	m.Fixed = rank
	return nil
}

func (k *ranks) setEdge(m *likes.Mutation) {
	le := binary.LittleEndian
	le.PutUint16(k.key[0:], uint16(m.Edge.Counter))
	le.PutUint16(k.key[2:], uint16(m.Edge.Item.Type))
	le.PutUint64(k.key[4:], uint64(m.Edge.Item.ID))
	le.PutUint64(k.key[12:], uint64(m.Edge.User))
}

func (k *ranks) test(clock likes.Clock, what byte) bool {
	return k.filter.Test(k.with(clock, what))
}

func (k *ranks) testOrAdd(clock likes.Clock, what byte) bool {
	return k.filter.TestOrAdd(k.with(clock, what))
}

func (k *ranks) with(clock likes.Clock, what byte) []byte {
	binary.LittleEndian.PutUint64(k.key[20:], uint64(clock))
	k.key[28] = what
	return k.key[:]
}
