package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"likectl/pkg/batch"
	"likectl/pkg/clock"
	"likectl/pkg/config"
	"likectl/pkg/likes"
	"likectl/pkg/store/postgres"
	"likectl/tiers"
	"likectl/tiers/tier1"
)

// openService opens tier 1 over a database as `likectl serve` does.
func (l *lab) openService(ctx context.Context, name string) (*tier1.Service, *postgres.Store, error) {
	c := config.Default()
	db, err := postgres.Open(ctx, postgres.Config{
		DSN: l.pg.dsn(name), MaxConns: c.Postgres.MaxConns, StatementTimeout: c.Postgres.StatementTimeout,
		Writers: c.Write.Lanes + c.Replay.Lanes + c.Tally.Lanes,
	})
	if err != nil {
		return nil, nil, err
	}
	lanes := func(b config.Batch) batch.Config {
		return batch.Config{Lanes: b.Lanes, MaxBatch: b.MaxBatch, MaxQueue: b.MaxQueue, FlushTimeout: b.Timeout}
	}
	s, err := tier1.Start( //nolint:contextcheck // its flushes outlive the callers; Close ends them
		db, clock.New(1), tiers.Contract(tiers.Postgres), tier1.Config{
			Issue: lanes(c.Write), Replay: lanes(c.Replay), Tally: lanes(c.Tally), Retention: c.Events.Retention,
		}, tier1.Hooks{})
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return s, db, nil
}

// edge is a like as the service takes it.
func edge(item, user int64) likes.Edge {
	return likes.Edge{Counter: likes.Likes, User: likes.UserID(user), Item: likes.Item{Type: 1, ID: likes.ItemID(item)}}
}

// interfaced measures callers of the service in this process: every like is a call
// of its own, and durable when it is answered.
func (l *lab) interfaced(ctx context.Context, t Traffic, n int, d time.Duration) (Sample, error) {
	return l.pg.round(ctx, registers(), func(name string) (s Sample, unsure int64, err error) {
		service, db, err := l.openService(ctx, name)
		if err != nil {
			return s, 0, err
		}
		pickers := make([]*picker, n)
		for i := range pickers {
			pickers[i] = newPicker(t, i)
		}
		m := newMeter(true, map[string]int{database: l.pg.pid})
		s, err = callers(ctx, n, d, func(ctx context.Context, i int) error {
			return service.Apply(ctx, []likes.Mutation{{Op: likes.Set, Edge: edge(pickers[i].like())}})[0].Err
		})
		s.CPU = m.perLike(s.Done)
		return s, 0, errors.Join(err, service.Close(context.WithoutCancel(ctx)), db.Close())
	})
}

// serve starts `likectl serve` on a database, without limits on callers: the load
// comes from one address.
func (l *lab) serve(ctx context.Context, name string) (*process, error) {
	admin, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	env := []string{"LIKECTL_POSTGRES_DSN=" + l.pg.dsn(name), "LIKECTL_LIMITS_ENABLED=false", "LIKECTL_LOG_LEVEL=warn"}
	return startProcess(ctx, l.dir, env, l.likectl, func(addr string) []string {
		return []string{"serve", "--listen", addr, "--admin-listen", admin, "--data", l.data}
	})
}

// overHTTP measures a real likectl process with single likes or, for a batch of more
// than one, through likes:batch.
func (l *lab) overHTTP(ctx context.Context, t Traffic, connections, batchOf int, d time.Duration) (Sample, error) {
	return l.pg.round(ctx, registers(), func(name string) (s Sample, unsure int64, err error) {
		p, err := l.serve(ctx, name)
		if err != nil {
			return s, 0, err
		}
		s, unsure, err = drive(ctx, p.addr, connections, 0, d, l.pids(p), l.likes(p.addr, t, batchOf))
		if err = errors.Join(err, p.stop()); err != nil {
			return s, 0, fmt.Errorf("%w\n%s", err, p.tail())
		}
		return s, unsure, nil
	})
}

func (l *lab) pids(p *process) map[string]int {
	return map[string]int{server: p.pid(), database: l.pg.pid}
}

// likes makes single likes or batches of them.
func (l *lab) likes(addr string, t Traffic, batchOf int) func(int, *tally) *script {
	authorization := "\r\nAuthorization: Bearer " + l.token
	return func(connection int, to *tally) *script {
		p := newPicker(t, connection)
		var body []byte
		op := func() {
			item, user := p.like()
			body = strconv.AppendInt(append(body, `{"item_id":"`...), item, 10)
			body = strconv.AppendInt(append(body, `","item_type":"post","user_id":"`...), user, 10)
		}
		if batchOf == 1 {
			return &script{to: to, good: status200, next: func(b []byte) ([]byte, int64) {
				body = body[:0]
				op()
				body = append(body, `"}`...)
				return post(b, addr, "/v1/like", authorization, body), 1
			}}
		}
		return &script{to: to, good: everyEntry, next: func(b []byte) ([]byte, int64) {
			body = append(body[:0], `{"ops":[`...)
			for i := range batchOf {
				if i > 0 {
					body = append(body, ',')
				}
				op()
				body = append(body, `","action":"like"}`...)
			}
			body = append(body, `]}`...)
			return post(b, addr, "/v1/likes:batch", authorization, body), int64(batchOf)
		}}
	}
}
