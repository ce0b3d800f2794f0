package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"likectl/pkg/likes"
)

// Inspector looks at a server without using it as a store, so that it can also
// look at one that [Open] refuses. It is not safe for concurrent use.
type Inspector struct {
	conn  *pgx.Conn
	place string
}

// Inspection is what an operator should know of a server. What the role may not
// see counts as not there.
type Inspection struct {
	Version string
	// Schema says what is wrong with the tables, nil if nothing is.
	Schema     error
	Durability []Finding
	// ReadOnly: a standby, or one that refuses writes by default.
	ReadOnly bool
	// Connections is how many of them this role may open in this database, with
	// those open already, and Others how many connections of other roles or
	// databases take from the same limit now.
	Connections, Others int
	// Standbys is synchronous_standby_names; Replicas are connected now,
	// Synchronous of them are waited for.
	Standbys              string
	Replicas, Synchronous int
	// Archiving: the log is archived, so that a backup can be rolled forward.
	Archiving  bool
	Autovacuum bool
	// Longest is how long the oldest transaction in this database has been open.
	Longest time.Duration
	Tables  []TableHealth
}

// TableHealth are the statistics of one table.
type TableHealth struct {
	Name       string
	Live, Dead int64
	Bytes      int64
	// Vacuumed is zero if it never was.
	Vacuumed time.Time
	// Autovacuum is false where it is switched off for this table.
	Autovacuum bool
	// Age is how many transactions ago its oldest row was frozen. At 2^31 the
	// server stops taking writes.
	Age int64
}

const (
	serverSQL = `
select current_setting('server_version'),
	pg_is_in_recovery() or (select reset_val from pg_settings where name = 'default_transaction_read_only') = 'on',
	least(current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
			- coalesce(current_setting('reserved_connections', true)::int, 0),
		(select nullif(rolconnlimit, -1) from pg_roles where rolname = current_user),
		(select nullif(datconnlimit, -1) from pg_database where datname = current_database())),
	(select count(*) from pg_stat_activity where coalesce(backend_type, 'client backend') = 'client backend'
		and datname is not null and not (usename = current_user and datname = current_database())),
	current_setting('synchronous_standby_names'),
	(select count(*) from pg_stat_replication),
	(select count(*) from pg_stat_replication where sync_state in ('sync', 'quorum')),
	current_setting('archive_mode') <> 'off', current_setting('autovacuum') = 'on',
	coalesce((select extract(epoch from max(clock_timestamp() - xact_start)) from pg_stat_activity
		where datname = current_database() and pid <> pg_backend_pid()), 0)::float8`

	tablesSQL = `
select c.relname, coalesce(s.n_live_tup, 0), coalesce(s.n_dead_tup, 0), pg_total_relation_size(c.oid),
	greatest(s.last_vacuum, s.last_autovacuum), not coalesce('autovacuum_enabled=false' = any(c.reloptions), false),
	age(c.relfrozenxid)::bigint
from pg_class c left join pg_stat_user_tables s on s.relid = c.oid
where c.oid in (to_regclass('edges'), to_regclass('counters')) order by 1`
)

// Inspect opens one connection to look at a server. Close the inspector when done
// with it.
func Inspect(ctx context.Context, c Config) (*Inspector, error) {
	config, err := c.pool()
	if err != nil {
		return nil, err
	}
	i := &Inspector{place: place(config.ConnConfig)}
	if i.conn, err = pgx.ConnectConfig(ctx, config.ConnConfig); err != nil {
		return nil, likes.Errorf(likes.ErrUnavailable, "open %s: %w", i.place, attempt(err))
	}
	setup := fmt.Sprintf("set statement_timeout = %d; set default_transaction_read_only = on", c.StatementTimeout.Milliseconds())
	if _, err := i.conn.PgConn().Exec(ctx, setup).ReadAll(); err != nil {
		return nil, errors.Join(likes.Errorf(likes.ErrUnavailable, "open %s: %w", i.place, err), i.Close(ctx))
	}
	return i, nil
}

// String names the database, without user and password.
func (i *Inspector) String() string { return i.place }

// Close closes the connection.
func (i *Inspector) Close(ctx context.Context) error { return i.conn.Close(ctx) }

// Now reads the server's clock.
func (i *Inspector) Now(ctx context.Context) (now time.Time, err error) {
	err = i.conn.QueryRow(ctx, "select clock_timestamp()").Scan(&now)
	return now, err
}

// Look reads everything there is to know.
func (i *Inspector) Look(ctx context.Context) (*Inspection, error) {
	var found Inspection
	var longest float64
	err := i.conn.QueryRow(ctx, serverSQL).Scan(&found.Version, &found.ReadOnly, &found.Connections, &found.Others,
		&found.Standbys, &found.Replicas, &found.Synchronous, &found.Archiving, &found.Autovacuum, &longest)
	if err != nil {
		return nil, fmt.Errorf("inspect %s: %w", i.place, err)
	}
	found.Longest = time.Duration(longest * float64(time.Second))
	if found.Durability, err = durability(ctx, i.conn); err != nil {
		return nil, fmt.Errorf("inspect %s: %w", i.place, err)
	}
	found.Schema = checkSchema(ctx, i.conn, "likectl schema up")
	rows, err := i.conn.Query(ctx, tablesSQL)
	if err != nil {
		return nil, fmt.Errorf("inspect %s: %w", i.place, err)
	}
	var t TableHealth
	var vacuumed *time.Time
	_, err = pgx.ForEachRow(rows, []any{&t.Name, &t.Live, &t.Dead, &t.Bytes, &vacuumed, &t.Autovacuum, &t.Age}, func() error {
		t.Vacuumed = time.Time{}
		if vacuumed != nil {
			t.Vacuumed = *vacuumed
		}
		found.Tables = append(found.Tables, t)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("inspect %s: %w", i.place, err)
	}
	return &found, nil
}
