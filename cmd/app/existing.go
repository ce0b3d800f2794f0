package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"likectl/pkg/config"
	"likectl/pkg/datadir"
	"likectl/tiers/tier1"
)

// OpenExisting opens the tier of a command that works on what is there: a
// forgotten -c must not end in an empty store in the current folder, nor leave
// item types of another configuration in the store.
func OpenExisting(ctx context.Context, cfg config.Config) (*Tier, error) {
	if err := RequireStore(cfg); err != nil {
		return nil, err
	}
	return openTier(ctx, cfg, Quiet(), tier1.Hooks{}, false)
}

// OpenForImport opens the tier of a command that adds likes. With create, an
// embedded store may be new.
func OpenForImport(ctx context.Context, cfg config.Config, create bool) (*Tier, error) {
	if !create {
		if err := RequireStore(cfg); err != nil {
			return nil, err
		}
	}
	return openTier(ctx, cfg, Quiet(), tier1.Hooks{}, true)
}

// RequireStore returns an error that says how to name a store if the one that
// was named is an embedded one that does not exist.
func RequireStore(cfg config.Config) error {
	if cfg.Postgres.DSN != "" {
		return nil
	}
	_, err := os.Stat(datadir.DatabaseIn(cfg.Data))
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	dir := cfg.Data
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return fmt.Errorf("there are no likes in the data folder %s, and it was not touched; name the store with --data, -c FILE, --dsn or "+
		"LIKECTL_POSTGRES_DSN, or a running server with --admin URL; `likectl serve --data %s` makes a new one", dir, cfg.Data)
}
