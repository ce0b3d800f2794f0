package app

import (
	"context"
	"errors"
	"io/fs"

	"likectl/cmd/cli"
	"likectl/pkg/config"
	"likectl/pkg/datadir"
	"likectl/pkg/store/postgres"
)

// LoadSecret loads the secret that instances on a shared store must share, makes
// it for the first one, and refuses another one unless it is to be adopted.
func (t *Tier) LoadSecret(ctx context.Context, cfg config.Config, adopt bool) error {
	if t.shared == nil {
		return nil // the data folder's own
	}
	_, err := datadir.LoadSecret(cfg.Data)
	missing := errors.Is(err, fs.ErrNotExist)
	if t.Secret, err = datadir.Secret(cfg.Data); err != nil {
		return err
	}
	if missing {
		t.log.Warn("made a new secret; instances on the same database need a copy of it", "file", datadir.SecretIn(cfg.Data))
	}
	err = t.shared.ClaimSecret(ctx, datadir.Fingerprint(t.Secret), adopt)
	if errors.Is(err, postgres.ErrOtherSecret) {
		return cli.Usagef("%s: %w than %s, so each would refuse the other's tokens; nothing was changed; copy the file from an instance that "+
			"runs; or, to change the secret of all, start this one with --adopt-secret and give the others a copy",
			t.Backend, err, datadir.SecretIn(cfg.Data))
	}
	return err
}
