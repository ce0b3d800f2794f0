package doctor

import (
	"context"
	"fmt"
	"time"

	"likectl/pkg/clock"
	"likectl/pkg/config"
	"likectl/pkg/store/postgres"
)

const (
	// maxOffset is more than two disciplined clocks ever differ.
	maxOffset = time.Second
	// maxTransaction is longer than anything likectl does; an open transaction
	// keeps every old version of every row that changes meanwhile.
	maxTransaction = 15 * time.Minute
	// maxAge is half of what is left to the server, which stops taking writes
	// 2^31 transactions after the oldest row was frozen; autovacuum freezes at
	// 200 million.
	maxAge = 1_000_000_000
	// Autovacuum begins at 20 % dead rows: twice as many say that it does not
	// keep up. Below minDead it does not matter.
	maxDeadShare = 0.4
	minDead      = 100_000
	// lookTimeout bounds everything asked of one server.
	lookTimeout = 30 * time.Second
)

// postgres checks the database.
func (r *Report) postgres(ctx context.Context, cfg config.Config, instances int) {
	const check = "postgres"
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	i, err := postgres.Inspect(ctx, postgres.Config{
		DSN: cfg.Postgres.DSN.Reveal(), MaxConns: cfg.Postgres.MaxConns, StatementTimeout: cfg.Postgres.StatementTimeout,
	})
	if err != nil {
		r.bad(Fail, check, err.Error(), "no like is taken and no count is read; what was answered is on the server's disk",
			"check postgres.dsn, the network, and that the server runs")
		return
	}
	defer func() { _ = i.Close(context.WithoutCancel(ctx)) }()
	found, err := i.Look(ctx)
	if err != nil {
		r.bad(Fail, check, err.Error(), "it is reached and does not answer", "see the server's log")
		return
	}
	r.ok(check, i.String()+", version "+found.Version, "reached")
	if found.ReadOnly {
		r.bad(Fail, check+" role", "read-only", "every like is refused; a standby, or default_transaction_read_only",
			"point postgres.dsn at the primary (target_session_attrs=read-write finds it)")
	}
	if found.Schema != nil {
		r.bad(Fail, check+" schema", found.Schema.Error(), "the service does not start", "likectl schema up, or the likectl that made it")
	} else {
		r.ok(check+" schema", "as this program needs it", "nothing to do")
	}
	r.durability(cfg, found)
	r.copies(found)
	r.offset(ctx, cfg, i)
	r.connections(cfg, instances, found)
	r.vacuum(found)
}

func (r *Report) durability(cfg config.Config, found *postgres.Inspection) {
	for _, f := range found.Durability {
		check, text := "postgres "+f.Setting, f.Value
		switch {
		case !f.Unsafe:
			r.ok(check, text, f.Means)
		case cfg.Postgres.AllowUnsafe:
			r.bad(Warn, check, text+", allowed by postgres.allow_unsafe", f.Means, "change it before the likes matter")
		default:
			r.bad(Fail, check, text, f.Means, "change it, or set postgres.allow_unsafe to accept the loss")
		}
	}
}

// copies says what the loss of the server's disk costs.
func (r *Report) copies(found *postgres.Inspection) {
	const check = "postgres copies"
	text := fmt.Sprintf("%d replicas, %d of them synchronous", found.Replicas, found.Synchronous)
	if found.Archiving {
		text += ", the log is archived"
	}
	switch {
	case found.Standbys != "" && found.Synchronous == 0 && found.Replicas == 0:
		r.bad(Fail, check, text+", synchronous_standby_names = "+found.Standbys,
			"commits wait for a standby that is not there: every like times out as uncertain",
			"bring the standby back, or take it out of synchronous_standby_names")
	case found.Standbys != "":
		r.ok(check, text, "an answered like is on two disks (synchronous_standby_names is set)")
	case found.Replicas > 0 || found.Archiving:
		r.ok(check, text, "the loss of the server's disk loses the last moments before it; synchronous_standby_names would keep them, for a round trip per commit")
	default:
		r.bad(Warn, check, text, "this server's disk is the only one: its loss loses all since the last backup",
			"add a replica, archive the log (archive_mode), or accept it and keep backups")
	}
}

// offset compares this machine's clock with the server's.
func (r *Report) offset(ctx context.Context, cfg config.Config, i *postgres.Inspector) {
	const check = "clock"
	c := clock.New(0)
	if err := c.Measure(ctx, i.Now); err != nil {
		r.bad(Warn, check, err.Error(), "the difference is not known", "run it again")
		return
	}
	bound, _ := c.Bound()
	ahead := -c.Offset()
	found := fmt.Sprintf("%v against the database's, ± %v", ahead.Round(time.Microsecond), bound.Round(time.Microsecond))
	const means = "no like depends on it (rows order them, times are the database's)"
	if ahead.Abs()-bound > maxOffset {
		r.bad(Warn, check, found, fmt.Sprintf("%s, but tokens made on other machines begin and end by their clock, and more than auth.leeway = %v is too much",
			means, cfg.Auth.Leeway), "run an NTP client on both machines")
		return
	}
	r.ok(check, found, means)
}

func (r *Report) connections(cfg config.Config, instances int, found *postgres.Inspection) {
	const check = "postgres connections"
	need, left := cfg.Postgres.MaxConns*instances, found.Connections-found.Others
	text := fmt.Sprintf("%d needed by %d instances, %d there, %d of them used by others", need, instances, found.Connections, found.Others)
	const do = "lower postgres.max_conns, raise max_connections, or put a pooler in session mode between"
	switch {
	case need > found.Connections:
		r.bad(Fail, check, text, "instances find none left: likes are refused under load, none is lost", do)
	case need > left:
		r.bad(Warn, check, text, "instances find none left while the others keep theirs: likes are refused under load, none is lost", do)
	default:
		r.ok(check, text, "every instance can open all of postgres.max_conns")
	}
	if lanes := cfg.Write.Lanes + cfg.Replay.Lanes; cfg.Postgres.MaxConns <= lanes {
		r.bad(Warn, "postgres.max_conns", fmt.Sprintf("%d, with %d lanes of writes", cfg.Postgres.MaxConns, lanes),
			"reads wait while all lanes write", fmt.Sprintf("set it to %d or more", 2*lanes))
	}
}

func (r *Report) vacuum(found *postgres.Inspection) {
	if !found.Autovacuum {
		r.bad(Warn, "postgres autovacuum", "off", "tables grow without end, and in the end the server stops taking writes", "set autovacuum = on")
	}
	if found.Longest > maxTransaction {
		r.bad(Warn, "postgres transactions", "the oldest is open for "+found.Longest.Round(time.Second).String(),
			"no row that changed since can be cleaned up: counters get slower and tables grow",
			"find it in pg_stat_activity (order by xact_start), and end it")
	}
	for _, t := range found.Tables {
		r.table(t)
	}
}

func (r *Report) table(t postgres.TableHealth) {
	check := "table " + t.Name
	vacuumed := "never vacuumed"
	if !t.Vacuumed.IsZero() {
		vacuumed = "vacuumed " + t.Vacuumed.UTC().Format(time.RFC3339)
	}
	text := fmt.Sprintf("%s, %d rows and %d dead ones, %s", size(t.Bytes), t.Live, t.Dead, vacuumed)
	switch {
	case !t.Autovacuum:
		r.bad(Warn, check, text+", autovacuum is off for it", "it grows without end",
			fmt.Sprintf("alter table %s reset (autovacuum_enabled)", t.Name))
	case t.Age > maxAge:
		r.bad(Warn, check, fmt.Sprintf("%s, oldest row %d transactions old", text, t.Age), "at 2147 million the server stops taking writes",
			"vacuum (freeze) "+t.Name)
	case t.Dead > minDead && float64(t.Dead) > maxDeadShare*float64(t.Live+t.Dead):
		r.bad(Warn, check, text, "dead rows make the table larger and reads slower; no like is in danger",
			fmt.Sprintf("vacuum %s; then make autovacuum faster (autovacuum_vacuum_cost_limit), or find what holds it up", t.Name))
	default:
		r.ok(check, text, "cleaned up as fast as it changes")
	}
}
