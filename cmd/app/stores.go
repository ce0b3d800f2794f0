// Package app is the only wiring: configuration, stores, tier, handlers,
// listeners, opened in this order and closed in reverse.
package app

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"likectl/cmd/cli"
	"likectl/pkg/batch"
	"likectl/pkg/clock"
	"likectl/pkg/config"
	"likectl/pkg/datadir"
	"likectl/pkg/httpapi"
	"likectl/pkg/lifecycle"
	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/store/postgres"
	"likectl/pkg/store/sqlite"
	"likectl/tiers"
	"likectl/tiers/tier1"
)

// Tier is an open tier with the stores below it.
type Tier struct {
	Service likes.Service
	Auditor store.Auditor
	Walker  store.Walker
	Catalog store.Catalog
	// People erases users; see also [Tier.Erasures].
	People store.People
	// Probes ask every backend for a sign of life.
	Probes []httpapi.Probe
	// Secret signs tokens. On a shared store it is set by [Tier.LoadSecret].
	Secret []byte
	// Backend says in a few words where the data is.
	Backend string
	// UserHash is what logs call a user.
	UserHash func(likes.UserID) string
	// Queued returns how many operations wait for a transaction.
	Queued func() int

	engine tiers.Engine
	opened lifecycle.Stack
	log    *slog.Logger
	shared *postgres.Store // nil if this process is alone
}

// clockEvery is how often the reference clock is read. At 200 ppm of drift the
// bound grows by 2 ms in between.
const clockEvery = 10 * time.Second

// OpenTier opens the stores that the configuration names and the tier over them.
// Either all is open or nothing is.
func OpenTier(ctx context.Context, cfg config.Config, log *slog.Logger, hooks tier1.Hooks) (*Tier, error) {
	return openTier(ctx, cfg, log, hooks, true)
}

// edges is what tier 1 is opened over.
type edges interface {
	tier1.Store
	store.ItemTypes
	store.WriteProber
	store.People
}

// openTier opens the tier. Without register, the configured item types are only
// compared with those in the store.
func openTier(ctx context.Context, cfg config.Config, log *slog.Logger, hooks tier1.Hooks, register bool) (t *Tier, err error) {
	if cfg.Tier != 1 {
		return nil, cli.Usagef("tier %d is not built yet; tier 1 is", cfg.Tier)
	}
	t = &Tier{log: log}
	opened := t // returning an error sets t to nil before the deferred call
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.Close(context.WithoutCancel(ctx)))
		}
	}()
	var db edges
	t.engine = tiers.SQLite
	if cfg.Postgres.DSN == "" {
		db, err = t.openEmbedded(ctx, cfg)
	} else {
		t.engine = tiers.Postgres
		db, err = t.openPostgres(ctx, cfg)
	}
	if err != nil {
		return nil, err
	}
	if err := checkTypes(ctx, cfg, db, register); err != nil {
		return nil, fmt.Errorf("%s: %w", t.Backend, err)
	}
	hooks.Flushed = t.watchWrites(db, hooks.Flushed)
	clk := t.startClock(ctx, db)
	service, err := tier1.Start( //nolint:contextcheck // its flushes outlive the callers; Close ends them
		db, clk, tiers.Contract(t.engine), tier1.Config{
			Issue: batching(cfg.Write), Replay: batching(cfg.Replay), Tally: batching(cfg.Tally), Retention: cfg.Events.Retention,
		}, hooks)
	if err != nil {
		return nil, err
	}
	t.opened.Push("write path", service.Close)
	t.Service, t.Queued = service, service.Queued
	t.UserHash = func(u likes.UserID) string { return db.HashUser(u).String() }
	return t, nil
}

// within waits for a store to close at most until the context ends: a server that
// hangs is not worth waiting for, since everything answered is committed.
func within(ctx context.Context, closeStore func() error) error {
	closed := make(chan error, 1)
	go func() { closed <- closeStore() }()
	select {
	case err := <-closed:
		return err
	case <-ctx.Done():
		return fmt.Errorf("connections not closed in time: %w", ctx.Err())
	}
}

// Close drains the write path and closes the stores.
func (t *Tier) Close(ctx context.Context) error { return t.opened.Close(ctx, t.log) }

// checkTypes refuses item types that contradict what the store's numbers stand
// for. They are a mistake of the configuration.
func checkTypes(ctx context.Context, cfg config.Config, known store.ItemTypes, register bool) error {
	types := make(map[string]likes.ItemType, len(cfg.Items.Types))
	for name, n := range cfg.Items.Types {
		types[name] = likes.ItemType(n) //nolint:gosec // validated
	}
	var err error
	if register {
		err = known.RegisterItemTypes(ctx, types)
	} else {
		var registered map[string]likes.ItemType
		if registered, err = known.ItemTypes(ctx); err == nil {
			_, err = store.NewItemTypes(registered, types)
		}
	}
	if errors.Is(err, likes.ErrInvalid) {
		err = cli.WithCode(cli.Usage, err)
	}
	return err
}

func (t *Tier) openEmbedded(ctx context.Context, cfg config.Config) (edges, error) {
	dir, err := datadir.Open(cfg.Data)
	if err != nil {
		return nil, err
	}
	t.opened.Push("data folder", func(context.Context) error { return dir.Close() })
	db, err := sqlite.Open(ctx, dir.Database())
	if err != nil {
		return nil, err
	}
	t.opened.Push("sqlite", func(context.Context) error { return db.Close() })
	t.Auditor, t.Walker, t.Catalog, t.People, t.Secret = db, db, db, db, dir.Secret()
	t.Backend = "embedded SQLite in " + dir.Path()
	t.Probes = []httpapi.Probe{{Name: "sqlite", Check: pinged(db)}}
	return db, nil
}

// openPostgres opens the database. Only what serves needs the secret; others
// neither make one nor ask for it.
func (t *Tier) openPostgres(ctx context.Context, cfg config.Config) (edges, error) {
	db, err := postgres.Open(ctx, postgres.Config{
		DSN: cfg.Postgres.DSN.Reveal(), MaxConns: cfg.Postgres.MaxConns, Writers: cfg.Write.Lanes + cfg.Replay.Lanes + cfg.Tally.Lanes,
		StatementTimeout: cfg.Postgres.StatementTimeout, AllowUnsafe: cfg.Postgres.AllowUnsafe, SchemaUp: schemaUp(cfg), Logger: t.log,
	})
	if err != nil {
		return nil, Unreached(cfg, err)
	}
	t.opened.Push("postgres", func(ctx context.Context) error { return within(ctx, db.Close) })
	t.Auditor, t.Walker, t.Catalog, t.People, t.shared = db, db, db, db, db
	t.Backend = db.String()
	t.Probes = []httpapi.Probe{{Name: "postgres", Check: pinged(db)}}
	return db, nil
}

func pinged(edges store.Edges) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := edges.Now(ctx)
		return err
	}
}

// startClock follows the store's clock until the tier closes. Tier 1 is right
// with any clock (the row orders the operations), so it does not wait for the
// first reading.
func (t *Tier) startClock(ctx context.Context, edges store.Edges) *clock.Clock {
	clk := clock.New(instanceID())
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		clk.Follow(ctx, edges.Now, clockEvery, func(err error) {
			t.log.Warn("reference clock not read; clocks go on with the last offset", "error", err)
		})
	}()
	t.opened.Push("clock", func(context.Context) error {
		stop()
		<-done
		return nil
	})
	return clk
}

// instanceID draws the id that this instance's clocks carry: region 0 (3 bits)
// and 9 random bits. At tier 1 two instances with one id do no harm, because the
// row makes every stored clock unique; tiers that order by clock alone lease it.
func instanceID() uint16 {
	var b [2]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return binary.BigEndian.Uint16(b[:]) & 0x1ff
}

func batching(b config.Batch) batch.Config {
	return batch.Config{Lanes: b.Lanes, MaxBatch: b.MaxBatch, MaxQueue: b.MaxQueue, FlushTimeout: b.Timeout}
}

// Logger returns the logger that the configuration asks for.
func Logger(cfg config.Log, w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.Level)); err != nil {
		return nil, fmt.Errorf("log.level: %w", err)
	}
	opts := &slog.HandlerOptions{Level: level}
	if cfg.Format == "json" {
		opts.ReplaceAttr = readableTimes
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return slog.New(slog.NewTextHandler(w, opts)), nil
}

// readableTimes writes durations as people do; JSON would have nanoseconds.
func readableTimes(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
