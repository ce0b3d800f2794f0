package app

import (
	"errors"

	"likectl/cmd/cli"
	"likectl/pkg/auth"
	"likectl/pkg/config"
	"likectl/pkg/likes"
)

// authConfig is the configuration of the tokens that the secret signs.
func authConfig(cfg config.Config, secret []byte, cache int) auth.Config {
	return auth.Config{
		Secret: secret, Issuer: cfg.Auth.Issuer, Audience: cfg.Auth.Audience, Leeway: cfg.Auth.Leeway, CacheSize: cache,
	}
}

// keySources returns auth.keys, once their files have been found good: before
// anything is opened, so that exit code 2 is true.
func keySources(cfg config.Config) ([]auth.Source, error) {
	sources, err := cfg.Auth.Sources()
	if err == nil {
		err = auth.CheckFiles(cfg.Auth.Issuer, sources)
	}
	if errors.Is(err, likes.ErrInvalid) {
		err = cli.WithCode(cli.Usage, err)
	}
	return sources, err
}
