package postgres

import (
	"context"
	"errors"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

var _ store.WriteProber = (*Store)(nil)

// probeSQL writes a message into the log of the server, for nobody, and so commits
// and flushes like a batch without a table to touch. Whether the server takes
// writes at all is asked first: a message is written in a read-only transaction,
// too.
const probeSQL = `
select case when pg_is_in_recovery() or current_setting('transaction_read_only')::bool then null
	else pg_logical_emit_message(true, 'likectl', 'probe') end is not null`

var errReadOnly = errors.New("the server is read-only: a standby, or default_transaction_read_only is on")

// ProbeWrite implements [store.WriteProber].
func (s *Store) ProbeWrite(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var wrote bool
	if err := s.pool.QueryRow(ctx, probeSQL).Scan(&wrote); err != nil {
		return s.readErr("probe a write", err)
	}
	if !wrote {
		return likes.Errorf(likes.ErrUnavailable, "probe a write on %s: %w", s.place, errReadOnly)
	}
	return nil
}
