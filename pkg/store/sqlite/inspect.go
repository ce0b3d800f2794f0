package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"os"

	"likectl/pkg/likes"
)

// Inspection is what an operator should know of a database file.
type Inspection struct {
	// Version is that of the SQLite library in this program.
	Version string
	// Schema is the last step of the schema that was applied, Known the last one
	// of this program.
	Schema, Known int64
	// Bytes is the size of the database, and Unused the part of it that holds
	// nothing and will be used again.
	Bytes, Unused int64
}

const selectInspection statement = `SELECT sqlite_version(), (SELECT max(version_id) FROM ` + schemaTable + ` WHERE is_applied = 1),
		(SELECT page_count * page_size FROM pragma_page_count, pragma_page_size),
		(SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size)`

// Inspect looks at a database file that no other process has open. It changes
// nothing.
func Inspect(ctx context.Context, path string) (found Inspection, err error) {
	steps, err := migrations.ReadDir("migrations") // numbered from 1 without gaps
	if err != nil {
		return Inspection{}, err
	}
	if _, err := os.Stat(path); err != nil { // a connection would make it
		return Inspection{}, likes.Errorf(likes.ErrUnavailable, "inspect: %w", err)
	}
	c, err := dial(ctx, path, readerPragmas)
	if err == nil {
		found.Known = int64(len(steps))
		err = c.query(ctx, selectInspection, 1, func(v []driver.Value) {
			found.Version, _ = v[0].(string)
			found.Schema, found.Bytes, found.Unused = number(v[1]), number(v[2]), number(v[3])
		})
		err = errors.Join(err, c.close())
	}
	if err != nil {
		return Inspection{}, likes.Errorf(likes.ErrUnavailable, "inspect %s: %w", path, explain(path, err))
	}
	return found, nil
}
