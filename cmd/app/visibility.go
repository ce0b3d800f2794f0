package app

import (
	"context"
	"errors"
	"log/slog"

	"likectl/cmd/cli"
	"likectl/pkg/config"
	"likectl/pkg/likes"
	"likectl/pkg/visibility"
)

// openAuthorizer opens the outside service that decides who sees what, nil if there
// is none. Its errors carry the exit code 2.
func openAuthorizer(ctx context.Context, cfg config.Config, log *slog.Logger) (*visibility.Authorizer, error) {
	if cfg.Visibility.Authorizer.URL == "" {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	types, err := cfg.ItemTypes()
	if err != nil {
		return nil, err
	}
	a, err := visibility.OpenAuthorizer(ctx, visibility.AuthorizerConfig{Endpoint: cfg.Visibility.Authorizer.Endpoint(), Types: types, Log: log})
	if errors.Is(err, likes.ErrInvalid) {
		err = cli.Usagef("visibility.authorizer.%w", err)
	}
	return a, err
}

// guard returns what decides who sees what, from a source or an authorizer.
func guard(cfg config.Config, source visibility.Source, outside *visibility.Authorizer) (*visibility.Guard, error) {
	v := visibility.Config{Registered: cfg.Items.Registered, Cache: cfg.Visibility.Cache, MaxEntries: cfg.Visibility.MaxEntries}
	if outside != nil {
		v.Authorizer = outside
	} else {
		v.Source = source
	}
	return visibility.New(v)
}
