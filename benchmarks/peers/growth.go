package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"likectl/benchmarks/workload"
)

// grown is a database of likectl with many likes, which stays from round to round.
type grown struct {
	name string
	rows int64
}

// grow makes a database with so many likes. Item 1 has a tenth of them; of the rest
// each item has ten.
func (l *lab) grow(ctx context.Context, rows int64) (g grown, err error) {
	g.rows = rows
	if g.name, err = l.pg.fresh(ctx, registers()); err != nil {
		return g, err
	}
	return g, l.pg.on(ctx, g.name, func(conn *pgx.Conn) error {
		for _, q := range []string{
			// In the key's order, as a bulk load would do it. 4096 is one microsecond
			// of a clock.
			`insert into edges (item_id, user_id, clock, liked_at, counter, item_type, liked, was)
				select item, n, n * 4096, to_timestamp(n / 1e6), 1, 1, true, false
				from (select case when n % 10 = 0 then 1 else 2 + n / 10 end as item, n from generate_series(1, $1::bigint) n) l order by item, n`,
			`insert into counters (item_id, count, version, counter, item_type)
				select item_id, count(*), 1, counter, item_type from edges where $1::bigint > 0 group by counter, item_type, item_id order by 1`,
		} {
			if _, err := conn.Exec(ctx, q, rows); err != nil {
				return fmt.Errorf("make %d likes: %w", rows, err)
			}
		}
		for _, q := range []string{"vacuum analyze edges", "vacuum analyze counters", "checkpoint"} {
			if _, err := conn.Exec(ctx, q); err != nil {
				return err
			}
		}
		return nil
	})
}

// The load of reads while nothing else runs, for their latency.
const (
	readRate        = 500
	readConnections = 8
)

// onGrown lends a process on a grown database.
func (l *lab) onGrown(ctx context.Context, g grown, do func(p *process) (Sample, error)) (Sample, error) {
	p, err := l.serve(ctx, g.name)
	if err != nil {
		return Sample{}, err
	}
	s, err := do(p)
	if err = errors.Join(err, p.stop()); err != nil {
		return s, fmt.Errorf("%w\n%s", err, p.tail())
	}
	return s, nil
}

// growing measures the default workload's writes on a grown database, and then the
// latency of reads. The counts are compared with the edges at the end of all rounds.
func (l *lab) growing(ctx context.Context, g grown, connections int, d time.Duration) (s Sample, err error) {
	s, err = l.logged(ctx, g, connections, d)
	if err != nil {
		return s, err
	}
	_, err = l.onGrown(ctx, g, func(p *process) (Sample, error) {
		for name, source := range map[string]func(int, *tally) *script{
			"count_p99_ms": reading(p.addr, "/v1/count?item_type=post&item_id=1", []byte(`"counts"`)),
			"has_p99_ms":   l.ofWorkload(p.addr, "has", g),
		} {
			read, _, err := drive(ctx, p.addr, readConnections, readRate, d, l.pids(p), source)
			if err != nil {
				return s, err
			}
			s.Extra[name] = read.P99
		}
		return s, nil
	})
	return s, err
}

// logged measures the default workload's writes, with what they cost in log.
func (l *lab) logged(ctx context.Context, g grown, connections int, d time.Duration) (s Sample, err error) {
	before, err := l.pg.readLog(ctx, g.name)
	if err != nil {
		return s, err
	}
	s, err = l.onGrown(ctx, g, func(p *process) (Sample, error) {
		s, _, err := drive(ctx, p.addr, connections, 0, d, l.pids(p), l.writes(p.addr, g))
		return s, err
	})
	if err != nil {
		return s, err
	}
	after, err := l.pg.readLog(ctx, g.name)
	s.WAL = float64(after.bytes-before.bytes) / float64(max(1, s.Done))
	s.Syncs = float64(after.syncs-before.syncs) / float64(max(1, s.Done))
	return s, err
}

// writes are those of the default workload.
func (l *lab) writes(addr string, g grown) func(int, *tally) *script {
	mix, err := workload.Named("write")
	if err != nil {
		panic(err) // it is one of ours
	}
	target := workload.Target{Host: addr, Token: l.token, ItemType: "post"}
	of := workload.Population{Users: users - 1, Items: g.rows / 10}
	seed := uint64(time.Now().UnixNano()) //nolint:gosec // any number; rounds must differ
	return func(connection int, to *tally) *script {
		source := workload.NewSource(target, mix, of, seed, connection)
		return &script{
			to: to, good: func(status int, body []byte) bool { return source.Answered(workload.Write, status, body) == "" },
			next: func(b []byte) ([]byte, int64) {
				b, _ = source.Next(b)
				return b, 1
			},
		}
	}
}

// ofWorkload makes the reads of a workload over a grown database.
func (l *lab) ofWorkload(addr, name string, g grown) func(int, *tally) *script {
	mix, err := workload.Named(name)
	if err != nil {
		panic(err) // it is one of ours
	}
	target := workload.Target{Host: addr, Token: l.token, ItemType: "post"}
	return func(connection int, to *tally) *script {
		source := workload.NewSource(target, mix, workload.Population{Users: g.rows, Items: g.rows / 10}, 1, connection)
		return &script{to: to, good: everyEntry, next: func(b []byte) ([]byte, int64) {
			b, _ = source.Next(b)
			return b, 1
		}}
	}
}

// counting measures reads of counts on a grown database: of its popular item, or
// pages of 50.
func (l *lab) counting(ctx context.Context, g grown, pages bool, connections int, d time.Duration) (Sample, error) {
	return l.onGrown(ctx, g, func(p *process) (Sample, error) {
		source := reading(p.addr, "/v1/count?item_type=post&item_id=1", []byte(`"counts"`))
		if pages {
			source = l.ofWorkload(p.addr, "counts", g)
		}
		s, _, err := drive(ctx, p.addr, connections, 0, d, l.pids(p), source)
		return s, err
	})
}

// cycle measures the log from a checkpoint on: at first every page that changes is
// written whole, later few are. Extra has the bytes per like of the last part.
func (l *lab) cycle(ctx context.Context, g grown, connections int, d time.Duration) (s Sample, err error) {
	if _, err := l.pg.admin.Exec(ctx, "checkpoint"); err != nil {
		return s, err
	}
	const parts = 4
	var bytes, done int64
	for range parts {
		part, err := l.logged(ctx, g, connections, d/parts)
		if err != nil {
			return s, err
		}
		bytes, done = bytes+int64(part.WAL*float64(part.Done)), done+part.Done
		s = part
	}
	s.Extra = map[string]float64{"last_wal_bytes": s.WAL, "seconds": d.Seconds()}
	s.WAL, s.Done = float64(bytes)/float64(max(1, done)), done
	return s, nil
}

// auditGrown compares all counts of a grown database with their edges.
func (l *lab) auditGrown(ctx context.Context, g grown) error {
	a, err := l.pg.audit(ctx, g.name, registers())
	if err != nil {
		return err
	}
	return a.settle(a.edges, 0)
}
