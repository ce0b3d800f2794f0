package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

//go:embed migrations/*.sql
var migrations embed.FS

const (
	// schemaTable records which steps have been applied.
	schemaTable = "likectl_schema"
	// schemaVersion is the last step of this program, the one that it needs.
	schemaVersion = 3
	// Processes that migrate at once take turns: try each second, for 5 minutes.
	lockPeriod, lockTries = 1, 300
)

// SchemaUp applies the pending steps of the schema, each in a transaction, and
// returns them. Several processes may do so at once; they take turns.
func SchemaUp(ctx context.Context, dsn string) ([]store.Migration, error) {
	var done []store.Migration
	err := withSchema(ctx, dsn, func(p *goose.Provider) error {
		applied, err := p.Up(ctx)
		for _, m := range applied {
			done = append(done, store.Migration{Version: m.Source.Version, Name: path.Base(m.Source.Path), AppliedAt: time.Now().UTC()})
		}
		return err
	})
	return done, err
}

// SchemaStatus lists all steps that this version knows. It creates the empty
// table of applied steps where there is none.
func SchemaStatus(ctx context.Context, dsn string) ([]store.Migration, error) {
	var all []store.Migration
	err := withSchema(ctx, dsn, func(p *goose.Provider) error {
		status, err := p.Status(ctx)
		for _, m := range status {
			all = append(all, store.Migration{Version: m.Source.Version, Name: path.Base(m.Source.Path), AppliedAt: m.AppliedAt})
		}
		return err
	})
	return all, err
}

// withSchema lends a provider over connections of its own.
func withSchema(ctx context.Context, dsn string, f func(*goose.Provider) error) (err error) {
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	dial(c)
	defer func() {
		if err != nil {
			err = fmt.Errorf("schema of %s: %w", place(c), err)
		}
	}()
	steps, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockPeriod, lockTries))
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*c)
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.PingContext(ctx); err != nil {
		return likes.Errorf(likes.ErrUnavailable, "%w", attempt(err))
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, steps, goose.WithTableName(schemaTable),
		goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	if current, known, err := p.GetVersions(ctx); err != nil {
		return err
	} else if current > known {
		return newerSchema(current)
	}
	return f(p)
}

// newerSchema says that this program is too old for the database.
func newerSchema(version int64) error {
	return fmt.Errorf("the schema is at version %d, made by a newer likectl than this one, which knows %d; nothing was changed; "+
		"use that likectl, `likectl schema up` cannot go back", version, schemaVersion)
}

// checkSchema returns an error that says what to run unless the database has
// exactly the schema of this program.
func checkSchema(ctx context.Context, conn *pgx.Conn, up string) error {
	var version int64
	err := conn.QueryRow(ctx, "select coalesce(max(version_id), 0) from "+schemaTable+" where is_applied").Scan(&version)
	if pgErr := (*pgconn.PgError)(nil); errors.As(err, &pgErr) && pgErr.Code == "42P01" { // undefined_table
		version, err = 0, nil
	}
	switch {
	case err != nil:
		return likes.Errorf(likes.ErrUnavailable, "read the schema's version: %w", err)
	case version == 0:
		return fmt.Errorf("the database has no likectl schema; nothing was changed; create it with `%s`", up)
	case version < schemaVersion:
		return fmt.Errorf("the schema is at version %d and this program needs %d; nothing was changed; run `%s`", version, schemaVersion, up)
	case version > schemaVersion:
		return newerSchema(version)
	default:
		return nil
	}
}
