package erase

import (
	"context"
	"fmt"
	"time"

	"likectl/pkg/likes"
	"likectl/pkg/retry"
	"likectl/pkg/store"
)

// Registry is a store's erasures, with receipts. [Local] is that of a store that
// this process has open, and a running server's is reached through its admin
// listener.
type Registry interface {
	Store
	// Receipt returns the receipt of a user's erasure, ErrNotFound if there is
	// none, ErrNotYet if it is not finished.
	Receipt(ctx context.Context, user likes.UserID) (Receipt, error)
	// Verify returns what contradicts that the user is erased: rows that remain, a
	// missing or unfinished record and, unless r is nil, what of the receipt is
	// not as the record has it. Nothing: the erasure holds.
	Verify(ctx context.Context, user likes.UserID, r *Receipt) ([]Finding, error)
}

// Finding is what a verification found to be wrong.
type Finding struct {
	// What names it: record, unfinished, edges, tombstones, relations, signature or
	// receipt.
	What string `json:"what"`
	// Text says it in a sentence.
	Text string `json:"text"`
}

// Local is the registry over a store.
type Local struct {
	Store
	signer *signer
}

var _ Registry = (*Local)(nil)

// NewLocal returns the registry over a store, or ErrInvalid.
func NewLocal(s Store, c ReceiptConfig) (*Local, error) {
	signer, err := newSigner(c)
	if err != nil {
		return nil, err
	}
	return &Local{s, signer}, nil
}

// Receipt implements [Registry].
func (l *Local) Receipt(ctx context.Context, user likes.UserID) (Receipt, error) {
	e, begun, err := l.record(ctx, user)
	switch {
	case err != nil:
		return Receipt{}, fmt.Errorf("read an erasure: %w", err)
	case !begun:
		return Receipt{}, likes.Errorf(likes.ErrNotFound, "no erasure of this user has begun")
	case e.Finished.IsZero():
		return Receipt{}, likes.Errorf(likes.ErrNotYet, "the erasure of user %v is not finished", e.User)
	}
	return l.signer.receipt(e), nil
}

// Verify implements [Registry].
func (l *Local) Verify(ctx context.Context, user likes.UserID, r *Receipt) ([]Finding, error) {
	e, begun, err := l.record(ctx, user)
	if err != nil {
		return nil, fmt.Errorf("read an erasure: %w", err)
	}
	var found []Finding
	add := func(what, format string, args ...any) {
		found = append(found, Finding{what, fmt.Sprintf(format, args...)})
	}
	switch {
	case !begun:
		add("record", "the store has no record of an erasure of this user")
	case e.Finished.IsZero():
		add("unfinished", "the erasure has begun at %s and is not finished", e.Begun.UTC().Format(time.RFC3339))
	}
	var left store.Remains
	if err := retry.Do(ctx, func() (err error) { left, err = l.Remains(ctx, user); return err }); err != nil {
		return nil, fmt.Errorf("count what remains: %w", err)
	}
	for _, row := range []struct {
		what, text string
		n          int64
	}{
		{"edges", "likes and saves of the user", left.Edges},
		{"tombstones", "records of likes and saves that the user took back", left.Tombstones},
		{"relations", "blocks, follows and items of the user", left.Relations},
	} {
		if row.n > 0 {
			add(row.what, "%d %s remain", row.n, row.text)
		}
	}
	if r != nil {
		found = append(found, l.compare(*r, e, begun)...)
	}
	return found, nil
}

// compare holds a receipt against the record. When copies expire is what was
// configured when it was made, and only signed.
func (l *Local) compare(r Receipt, e store.Erasure, begun bool) []Finding {
	if !l.signer.good(r) {
		return []Finding{{"signature", "the receipt's signature is not that of this store's instances: it was changed, is another store's, or is from before the secret was replaced"}}
	}
	if !begun || e.Finished.IsZero() {
		return nil // found already
	}
	want := l.signer.receipt(e)
	if r.UserHash != want.UserHash {
		return []Finding{{"receipt", "the receipt is that of another user"}}
	}
	want.LogExpiresAt, want.BackupsExpireAt, want.Store = r.LogExpiresAt, r.BackupsExpireAt, r.Store
	if string(r.signed()) != string(want.signed()) {
		return []Finding{{"receipt", "the receipt says else than the store's record of this erasure"}}
	}
	return nil
}

func (l *Local) record(ctx context.Context, user likes.UserID) (e store.Erasure, begun bool, err error) {
	err = retry.Do(ctx, func() (err error) { e, begun, err = l.Erasure(ctx, user); return err })
	return e, begun, err
}
