package app

import (
	"errors"
	"fmt"
	"os"

	"likectl/pkg/config"
	"likectl/pkg/likes"
)

// schemaUp returns the command that makes the schema for a configuration.
func schemaUp(cfg config.Config) string { return command("likectl schema up", cfg) }

// Unreached adds to the error of a database that did not answer what that means
// for the likes, and the command that looks closer.
func Unreached(cfg config.Config, err error) error {
	if !errors.Is(err, likes.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w; no like is lost by that, and nothing was changed; check that the server runs and that postgres.dsn is right: `%s`",
		err, command("likectl doctor", cfg))
}

// command returns a command with what names the same database again.
func command(name string, cfg config.Config) string {
	switch {
	case cfg.File() != "":
		return fmt.Sprintf("%s -c %s", name, cfg.File())
	case os.Getenv("LIKECTL_POSTGRES_DSN") != "":
		return name
	default:
		return name + " --dsn DSN"
	}
}
