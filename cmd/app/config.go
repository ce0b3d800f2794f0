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

// AddStoreFlags adds -c, --data, --embedded and --dsn to a command.
func AddStoreFlags(cmd *cobra.Command) *StoreFlags {
	f := &StoreFlags{overrides: make(map[string]*pflag.Flag)}
	flags := cmd.PersistentFlags()
	flags.StringVarP(&f.File, "config", "c", "", "configuration file, such as configs/tier1.yaml")
	d := config.Default()
	flags.String("data", d.Data, "data folder: the secret, and the database when embedded")
	flags.Bool("embedded", false, "the likes are in SQLite in the data folder, although a file or tier is named")
	flags.String("dsn", "", "Postgres connection string; prefer LIKECTL_POSTGRES_DSN, flags are visible to other users")
	f.Override("data", flags.Lookup("data"))
	f.Override("embedded", flags.Lookup("embedded"))
	f.Override("postgres.dsn", flags.Lookup("dsn"))
	return f
}

// Override makes a flag, if it is given, override a key.
func (f *StoreFlags) Override(key string, flag *pflag.Flag) { f.overrides[key] = flag }

// AddServeFlags adds the flags that override more of what a server is told.
func AddServeFlags(cmd *cobra.Command, f *StoreFlags) {
	d := config.Default()
	set := cmd.PersistentFlags()
	set.Int("tier", d.Tier, "architecture {1|2|3|4|5}; 1 is built")
	set.String("listen", d.Listen, "address of the API")
	set.String("admin-listen", d.AdminListen, "loopback address of metrics, profiles and the admin API")
	for key, name := range map[string]string{"tier": "tier", "listen": "listen", "admin_listen": "admin-listen"} {
		f.Override(key, set.Lookup(name))
	}
}

// Load returns the configuration of a command that opens its store. Its errors
// carry the exit code 2.
func (f *StoreFlags) Load() (config.Config, error) {
	cfg, err := f.LoadAny()
	if err == nil {
		tier := f.overrides["tier"]
		err = checkStore(cfg, f.File != "" || tier != nil && tier.Changed)
	}
	return cfg, err
}

// LoadFor is Load for a command that asks the running server at a URL instead,
// unless the URL is empty. Then no store is needed, and naming one is a mistake.
func (f *StoreFlags) LoadFor(admin string) (config.Config, error) {
	if admin == "" {
		return f.Load()
	}
	for _, key := range []string{"postgres.dsn", "embedded"} {
		if flag := f.overrides[key]; flag.Changed {
			return config.Config{}, cli.Usagef("--admin and --%s exclude each other: the server has its store", flag.Name)
		}
	}
	return f.LoadAny()
}

// checkStore refuses to guess between the embedded store and a real one: whoever
// names a file or a tier means the store in it.
func checkStore(cfg config.Config, explicit bool) error {
	switch {
	case cfg.Tier != 1:
		return cli.Usagef("tier %d is not built yet; tier 1 is", cfg.Tier)
	case explicit && !cfg.Embedded && cfg.Postgres.DSN == "":
		return cli.Usagef("tier %d needs a Postgres: set postgres.dsn in a file given with -c, LIKECTL_POSTGRES_DSN or --dsn; "+
			"or add --embedded (embedded: true in the file) to use SQLite in %s", cfg.Tier, cfg.Data)
	default:
		return nil
	}
}

// LoadAny returns the configuration, whatever it says about stores.
func (f *StoreFlags) LoadAny() (config.Config, error) {
	cfg, err := config.Load(f.File, f.given())
	return cfg, asUsage(err)
}

// Explain returns the configuration, valid or not, and where its values are
// from. Its errors carry the exit code 2.
func (f *StoreFlags) Explain() (*config.Explained, error) {
	e, err := config.Explain(f.File, f.given())
	return e, asUsage(err)
}

// given are the keys that flags override.
func (f *StoreFlags) given() map[string]any {
	given := make(map[string]any)
	for key, flag := range f.overrides {
		if flag.Changed {
			given[key] = flag.Value.String()
		}
	}
	return given
}

func asUsage(err error) error {
	if errors.Is(err, likes.ErrInvalid) {
		return cli.WithCode(cli.Usage, err)
	}
	return err
}

// Quiet is the logger of commands that print their own results: warnings only.
func Quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
