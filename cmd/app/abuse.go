package app

import (
	"context"
	"errors"
	"log/slog"

	"likectl/cmd/cli"
	"likectl/pkg/abuse"
	"likectl/pkg/config"
	"likectl/pkg/likes"
	"likectl/pkg/telemetry"
	"likectl/pkg/visibility"
)

// openGuard returns the guard against fake likes, nil if nothing of it is configured.
// Its files are read before any store is opened, so that exit code 2 is true.
func openGuard(ctx context.Context, cfg config.Config, metrics *telemetry.Metrics, log *slog.Logger) (*abuse.Guard, error) {
	c := cfg.Guard()
	if c.Empty() {
		return nil, nil //nolint:nilnil // no guard is no error
	}
	types, err := cfg.ItemTypes()
	if err != nil {
		return nil, err
	}
	metrics.Abuse(abuse.Reasons(), abuse.Results())
	c.Types, c.Log = types, log
	c.Hooks = abuse.Hooks{Refused: metrics.AbuseRefused, Scored: metrics.Scored, Read: metrics.AbuseRead}
	g, err := abuse.Open(ctx, c)
	if errors.Is(err, likes.ErrInvalid) {
		err = cli.WithCode(cli.Usage, err)
	}
	return g, err
}

// ownersFrom returns who owns items. It is asked only about items that the caller has
// been found to see, so a limit on an owner's items tells nothing of others.
func ownersFrom(source visibility.Source) abuse.OwnerFunc {
	return func(ctx context.Context, items []likes.Item) ([]likes.UserID, error) {
		facts, owners := make([]visibility.Facts, len(items)), make([]likes.UserID, len(items))
		for from := 0; from < len(items); from += likes.MaxRead {
			part := items[from:min(from+likes.MaxRead, len(items))]
			if err := source.Facts(ctx, visibility.Anonymous, part, facts[from:]); err != nil {
				return nil, err
			}
		}
		for i, f := range facts {
			owners[i] = f.Owner
		}
		return owners, nil
	}
}
