package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"likectl/pkg/store/postgres"
	containers "likectl/testcontainers"
)

// postgresSettings are those of all systems on Postgres: what keeps commits, and
// what a server of this size has rather than the defaults for one of 1 GB. They are
// read back and printed.
var postgresSettings = []string{"shared_buffers=1GB", "max_wal_size=4GB"}

// databases is the one Postgres server that all systems on Postgres take turns on.
type databases struct {
	server *containers.Postgres
	admin  *pgx.Conn
	addr   string
	pid    int
	made   int
}

func openDatabases(ctx context.Context) (d *databases, err error) {
	server, err := containers.OpenPostgres(ctx, postgresSettings...)
	if err != nil {
		return nil, err
	}
	d = &databases{server: server}
	defer func() { //nolint:contextcheck // removing must outlive an interrupt
		if err != nil {
			err = errors.Join(err, server.Close())
		}
	}()
	if d.pid, err = server.ProcessID(ctx); err != nil {
		return nil, err
	}
	ip, err := server.IP(ctx)
	if err != nil {
		return nil, err
	}
	d.addr = net.JoinHostPort(ip, "5432")
	if d.admin, err = pgx.Connect(ctx, d.dsn("postgres")); err != nil {
		return nil, err
	}
	return d, nil
}

func (d *databases) dsn(name string) string {
	return "postgres://postgres:likectl@" + d.addr + "/" + name + "?sslmode=disable"
}

func (d *databases) close(ctx context.Context) error {
	return errors.Join(d.admin.Close(ctx), d.server.Close()) //nolint:contextcheck // removing must outlive an interrupt
}

// durability returns the settings that decide what an acknowledged like is worth,
// and an error unless it is worth the same as everywhere else.
func (d *databases) durability(ctx context.Context) ([]Setting, error) {
	rows, err := d.admin.Query(ctx, `select name, current_setting(name) from pg_settings where name in
		('server_version', 'fsync', 'synchronous_commit', 'full_page_writes', 'wal_sync_method', 'shared_buffers', 'max_wal_size') order by 1`)
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Setting, err error) {
		s.Server = "Postgres"
		return s, row.Scan(&s.Name, &s.Value)
	})
	if err != nil {
		return nil, err
	}
	return all, demand(all, "fsync", "on", "synchronous_commit", "on", "full_page_writes", "on")
}

// fresh makes an empty database with a scheme and writes back whatever rounds before
// have left dirty.
func (d *databases) fresh(ctx context.Context, s scheme) (name string, err error) {
	d.made++
	name = fmt.Sprintf("peers_%d", d.made)
	if _, err := d.admin.Exec(ctx, "create database "+name); err != nil {
		return "", err
	}
	if s.schema == "" {
		_, err = postgres.SchemaUp(ctx, d.dsn(name))
	} else {
		err = d.on(ctx, name, func(conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, s.schema)
			return err
		})
	}
	if err == nil {
		_, err = d.admin.Exec(ctx, "checkpoint")
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("make the tables of %s: %w", s.name, err), d.drop(ctx, name))
	}
	return name, nil
}

func (d *databases) drop(ctx context.Context, name string) error {
	_, err := d.admin.Exec(context.WithoutCancel(ctx), "drop database "+name+" with (force)")
	return err
}

// on lends a connection to a database.
func (d *databases) on(ctx context.Context, name string, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, d.dsn(name))
	if err != nil {
		return err
	}
	return errors.Join(do(conn), conn.Close(context.WithoutCancel(ctx)))
}

// log is how much has been written to the server's log.
type log struct{ bytes, syncs int64 }

// readLog reads it once nobody is connected to a database: sessions publish their
// fsyncs when they end (src/backend/utils/activity/pgstat.c).
func (d *databases) readLog(ctx context.Context, name string) (l log, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		var sessions int
		err := d.admin.QueryRow(ctx, `select (select count(*) from pg_stat_activity where datname = $1),
			pg_current_wal_lsn() - '0/0'::pg_lsn, (select wal_sync from pg_stat_wal)`, name).Scan(&sessions, &l.bytes, &l.syncs)
		if err != nil {
			return l, fmt.Errorf("read pg_stat_wal with %d sessions left: %w", sessions, err)
		}
		if sessions == 0 {
			return l, nil
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// audit compares counts with edges in one snapshot.
func (d *databases) audit(ctx context.Context, name string, s scheme) (a account, err error) {
	query := fmt.Sprintf(`select coalesce(sum(e.n), 0)::bigint, coalesce(sum(c.n), 0)::bigint,
		count(*) filter (where e.n is distinct from c.n and coalesce(e.n, 0) <> coalesce(c.n, 0))
		from (%s) e full join (%s) c using (item)`, s.edges, s.counters)
	err = d.on(ctx, name, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, query).Scan(&a.edges, &a.counted, &a.drifted)
	})
	return a, err
}

// round measures a system on a database of its own: run does the likes and has ended
// all of its sessions when it returns. unsure are likes that may be there or not.
func (d *databases) round(ctx context.Context, s scheme, run func(name string) (Sample, int64, error)) (out Sample, err error) {
	name, err := d.fresh(ctx, s)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, d.drop(ctx, name)) }()
	before, err := d.readLog(ctx, name)
	if err != nil {
		return out, err
	}
	out, unsure, err := run(name)
	if err != nil {
		return out, err
	}
	return out, d.finish(ctx, name, s, before, &out, unsure)
}

// finish fills in what the log says and compares counts, edges and answers.
func (d *databases) finish(ctx context.Context, name string, s scheme, before log, out *Sample, unsure int64) error {
	after, err := d.readLog(ctx, name)
	if err != nil {
		return err
	}
	out.Syncs = float64(after.syncs-before.syncs) / float64(max(1, out.Done))
	out.WAL = float64(after.bytes-before.bytes) / float64(max(1, out.Done))
	a, err := d.audit(ctx, name, s)
	if err != nil {
		return err
	}
	if s.drifts {
		out.Drifted, a.drifted, a.counted = a.drifted, 0, a.edges
	}
	return a.settle(out.Done, unsure)
}

// demand returns an error unless settings have the wanted values, given by turns
// with their names.
func demand(all []Setting, want ...string) error {
	var wrong []string
	for i := 0; i < len(want); i += 2 {
		found := ""
		for _, s := range all {
			if s.Name == want[i] {
				found = s.Value
			}
		}
		if found != want[i+1] {
			wrong = append(wrong, fmt.Sprintf("%s is %q, want %q", want[i], found, want[i+1]))
		}
	}
	if len(wrong) > 0 {
		return errors.New("a server is not as durable as the others: " + strings.Join(wrong, "; "))
	}
	return nil
}
