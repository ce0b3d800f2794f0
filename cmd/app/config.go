package app

import (
	"errors"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"likectl/cmd/cli"
	"likectl/pkg/config"
	"likectl/pkg/likes"
)

// StoreFlags are the flags with which a command that opens the stores itself
// finds them: a configuration file, and what overrides it.
type StoreFlags struct {
	File string
	// overrides maps keys of the configuration to flags that set them.
	overrides map[string]*pflag.Flag
}

// AddStoreFlags adds -c, --data and --dsn to a command.
func AddStoreFlags(cmd *cobra.Command) *StoreFlags {
	f := &StoreFlags{overrides: make(map[string]*pflag.Flag)}
	flags := cmd.PersistentFlags()
	flags.StringVarP(&f.File, "config", "c", "", "configuration file, such as configs/tier1.yaml")
	d := config.Default()
	flags.String("data", d.Data, "data folder: the secret, and the database when embedded")
	flags.String("dsn", "", "Postgres connection string; prefer LIKECTL_POSTGRES_DSN, flags are visible to other users")
	f.Override("data", flags.Lookup("data"))
	f.Override("postgres.dsn", flags.Lookup("dsn"))
	return f
}

// Override makes a flag, if it is given, override a key.
func (f *StoreFlags) Override(key string, flag *pflag.Flag) { f.overrides[key] = flag }

// Load returns the configuration. Its errors carry the exit code 2.
func (f *StoreFlags) Load() (config.Config, error) {
	given := make(map[string]any)
	for key, flag := range f.overrides {
		if flag.Changed {
			given[key] = flag.Value.String()
		}
	}
	cfg, err := config.Load(f.File, given)
	if errors.Is(err, likes.ErrInvalid) {
		err = cli.WithCode(cli.Usage, err)
	}
	return cfg, err
}

// Quiet is the logger of commands that print their own results: warnings only.
func Quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
