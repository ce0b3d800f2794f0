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
