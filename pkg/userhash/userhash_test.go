package userhash_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/userhash"
)

// TestReferenceVector is vectors_sip128[8] of the reference implementation
// (https://github.com/veorq/SipHash/blob/master/vectors.h): the key 00 01 … 0f
// over the eight bytes 00 01 … 07.
func TestReferenceVector(t *testing.T) {
	var key userhash.Key
	for i := range key {
		key[i] = byte(i)
	}
	require.Equal(t, "3b62a9ba6258f5610f83e264f31497b4", key.Hash(0x0706050403020100).String())
}

func TestHashesDependOnKeyAndUser(t *testing.T) {
	seen := map[string]bool{}
	for _, key := range []userhash.Key{{}, {1}, {15: 1}} {
		for _, user := range []likes.UserID{1, 2, 1 << 32, 1<<63 - 1} {
			seen[key.Hash(user).String()] = true
		}
	}
	require.Len(t, seen, 12)
}

func TestHashDoesNotAllocate(t *testing.T) {
	key := userhash.Key{7}
	user := likes.UserID(1)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		user++
		_ = key.Hash(user)
	}))
}

func BenchmarkHash(b *testing.B) {
	key := userhash.Key{7}
	var user likes.UserID
	b.ReportAllocs()
	for b.Loop() {
		user++
		_ = key.Hash(user)
	}
}
