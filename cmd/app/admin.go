package app

import (
	"context"
	"errors"
	"time"

	"likectl/cmd/cli"
	"likectl/pkg/adminapi"
	"likectl/pkg/auth"
	"likectl/pkg/config"
	"likectl/pkg/datadir"
	"likectl/pkg/likes"
)

// adminTTL is how long a token for one call is good: it covers the difference of
// the clocks and no more.
const adminTTL = time.Minute

// AdminClient returns a client of the admin listener at a URL. It makes its
// tokens itself, from the secret in the configured data folder: whoever can read
// that file could also open the store.
func AdminClient(cfg config.Config, url string) (*adminapi.Client, error) {
	tokens, err := minter(cfg)
	if err != nil {
		return nil, err
	}
	client, err := adminapi.NewClient(url, func() (string, error) { return tokens.Mint(1, auth.Admin, adminTTL) })
	if errors.Is(err, likes.ErrInvalid) {
		err = cli.Usagef("--admin: %w", err)
	}
	return client, err
}

// AskServer is [AdminClient] with the item types of the server, by whose names
// likes are written: this process may be configured with others.
func AskServer(ctx context.Context, cfg config.Config, url string) (*adminapi.Client, likes.ItemTypes, error) {
	client, err := AdminClient(cfg, url)
	if err != nil {
		return nil, likes.ItemTypes{}, err
	}
	types, err := client.ItemTypes(ctx)
	if err != nil {
		client.Close()
		return nil, likes.ItemTypes{}, err
	}
	return client, types, nil
}

// MintToken returns a token of the scope, made with the secret in the configured
// data folder.
func MintToken(cfg config.Config, scope auth.Scope, ttl time.Duration) (string, error) {
	tokens, err := minter(cfg)
	if err != nil {
		return "", err
	}
	return tokens.Mint(1, scope, ttl)
}

func minter(cfg config.Config) (*auth.Authority, error) {
	secret, err := datadir.LoadSecret(cfg.Data)
	if err != nil {
		return nil, err
	}
	return auth.New(authConfig(cfg, secret, 1))
}
