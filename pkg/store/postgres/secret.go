package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// ErrOtherSecret says that the instances on this database have another secret.
var ErrOtherSecret = errors.New("the instances on this database have another secret")

// ClaimSecret records the fingerprint of the secret that all instances share, the
// first time or with replace, and returns [ErrOtherSecret] if it is another one:
// instances with different secrets refuse each other's tokens.
func (s *Store) ClaimSecret(ctx context.Context, fingerprint string, replace bool) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var recorded string
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "update likectl_meta set secret = $1 where secret is null or $2", fingerprint, replace); err != nil {
			return err
		}
		return tx.QueryRow(ctx, "select secret from likectl_meta").Scan(&recorded)
	})
	switch {
	case err != nil:
		return s.writeErr("claim the secret", err)
	case recorded != fingerprint:
		return ErrOtherSecret
	default:
		return nil
	}
}
