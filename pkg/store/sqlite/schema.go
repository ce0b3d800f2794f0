package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

//go:embed migrations/*.sql
var migrations embed.FS

// schemaTable records which steps have been applied.
const schemaTable = "likectl_schema"

// SchemaUp applies the pending steps of the schema, each in a transaction, and
// returns them. It creates a missing file with mode 0600. [Open] does it by itself.
func SchemaUp(ctx context.Context, file string) ([]store.Migration, error) {
	if err := createPrivate(file); err != nil {
		return nil, likes.Errorf(likes.ErrUnavailable, "create database: %w", err)
	}
	var done []store.Migration
	err := withSchema(ctx, file, func(p *goose.Provider) error {
		applied, err := p.Up(ctx)
		for _, m := range applied {
			done = append(done, store.Migration{Version: m.Source.Version, Name: path.Base(m.Source.Path), AppliedAt: time.Now().UTC()})
		}
		return err
	})
	return done, err
}

// SchemaStatus lists all steps this version knows. It does not create a missing
// file, which is an error.
func SchemaStatus(ctx context.Context, file string) ([]store.Migration, error) {
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("schema of %s: there is no such database yet; likectl serve creates it", file)
	}
	var all []store.Migration
	err := withSchema(ctx, file, func(p *goose.Provider) error {
		status, err := p.Status(ctx)
		for _, m := range status {
			all = append(all, store.Migration{Version: m.Source.Version, Name: path.Base(m.Source.Path), AppliedAt: m.AppliedAt})
		}
		return err
	})
	return all, err
}

// withSchema opens the file, refuses a schema newer than this version knows,
// and runs fn.
func withSchema(ctx context.Context, file string, fn func(*goose.Provider) error) (err error) {
	connector, err := sqlite.NewConnector(dsn(file, commonPragmas+"&_txlock=immediate"))
	if err != nil {
		return fmt.Errorf("open database %s: %w", file, err)
	}
	db := sql.OpenDB(connector)
	defer func() { err = errors.Join(err, db.Close()) }()
	steps, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, steps,
		goose.WithTableName(schemaTable), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read the schema's steps: %w", err)
	}
	current, known, err := p.GetVersions(ctx)
	if err == nil && current > known {
		return likes.Errorf(likes.ErrUnavailable, "the database %s has schema %d and this likectl knows up to %d: "+
			"a newer version has written it; nothing was changed and its data is safe; run that version or a later one",
			file, current, known)
	}
	if err == nil {
		err = fn(p)
	}
	if err != nil {
		return likes.Errorf(likes.ErrUnavailable, "schema of %s: %w", file, explain(file, err))
	}
	return nil
}
