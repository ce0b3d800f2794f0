package postgres

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"likectl/pkg/likes"
)

// oldestVersion is the oldest server that the statements are written for.
const oldestVersion = 140000

// Finding is what one setting of the server means for acknowledged likes.
type Finding struct {
	Setting, Value string
	// Unsafe: a crash of the server or its machine can lose or damage what it
	// has acknowledged. Open refuses such a server unless told otherwise.
	Unsafe bool
	// Means says in words what the value does.
	Means string
}

// CheckDurability reads the settings that decide whether an acknowledged like
// survives a crash of the server.
func (s *Store) CheckDurability(ctx context.Context) ([]Finding, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, s.readErr("check durability", err)
	}
	defer conn.Release()
	found, err := durability(ctx, conn.Conn())
	if err != nil {
		return nil, s.readErr("check durability", err)
	}
	return found, nil
}

func durability(ctx context.Context, conn *pgx.Conn) ([]Finding, error) {
	const query = `select current_setting('fsync'), current_setting('full_page_writes'),
		coalesce((select reset_val from pg_settings where name = 'synchronous_commit'), ''), current_setting('server_version_num')`
	var fsync, pages, commit, version string
	if err := conn.QueryRow(ctx, query).Scan(&fsync, &pages, &commit, &version); err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(version)
	if err != nil {
		return nil, fmt.Errorf("server_version_num: %w", err)
	}
	found := []Finding{
		{"fsync", fsync, fsync != "on", "commits are flushed to disk before they are acknowledged"},
		{"full_page_writes", pages, pages != "on", "a page torn by a crash is restored"},
		{"synchronous_commit", commit, false, "the server's default; likectl's sessions wait for the flush whatever it is"},
		{"server_version_num", version, number < oldestVersion, "new enough for likectl's statements"},
	}
	if fsync != "on" {
		found[0].Means = "a crash of the server's machine loses acknowledged likes and can ruin the database"
	}
	if pages != "on" {
		found[1].Means = "a crash of the server's machine can ruin the database, unless the file system never tears a page"
	}
	if number < oldestVersion {
		found[3].Means = "older than 14, the oldest version that likectl is written for"
	}
	return found, nil
}

// refuseUnsafe returns an error for the first unsafe setting, or logs it if the
// configuration allows it.
func (c Config) refuseUnsafe(ctx context.Context, found []Finding) error {
	for _, f := range found {
		switch {
		case !f.Unsafe:
		case c.AllowUnsafe:
			c.Logger.WarnContext(ctx, "postgres is not durable", "setting", f.Setting, "value", f.Value, "means", f.Means)
		default:
			return fmt.Errorf("the server has %s = %s: %s; change it, or set postgres.allow_unsafe to accept the loss",
				f.Setting, f.Value, f.Means)
		}
	}
	return nil
}

// readErr is the error of a call that changes nothing: whatever went wrong, the
// database is as it was.
func (s *Store) readErr(what string, err error) error {
	return likes.Errorf(likes.ErrUnavailable, "%s in %s: no answer, nothing was changed: %w", what, s.place, attempt(err))
}
