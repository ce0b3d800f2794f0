package store

import "context"

// WriteProber finds out whether a store takes writes, which a store that answers
// reads may not: a full disk, a file system or a server that is read-only.
type WriteProber interface {
	// ProbeWrite commits something durably that changes nothing anybody reads.
	// Its error is ErrUnavailable.
	ProbeWrite(ctx context.Context) error
}
