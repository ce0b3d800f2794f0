package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
)

// likeFunc likes once and returns the count.
type likeFunc func(ctx context.Context, item, user int64) (count int64, err error)

// The pools of the fronts: 16 was the documents' transaction's best number of
// sessions; Redis likes them many.
const (
	naiveSessions = 16
	redisSessions = 64
)

// front starts a handler over a backend as a process of its own.
func (l *lab) front(ctx context.Context, kind, backend string) (*process, error) {
	return startProcess(ctx, l.dir, nil, l.self, func(addr string) []string {
		return []string{"front", kind + "=" + backend, addr}
	})
}

// front is what that process does: a plain handler with net/http, without
// authentication, over naive=DSN or redis=ADDRESS; or nothing=, a server that does
// nothing.
func front(backend, addr string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM) //nolint:forbidigo // it is another main
	defer stop()
	if backend == "nothing=" {
		return serveNothing(ctx, addr)
	}
	like, end, err := openFront(ctx, backend)
	if err != nil {
		return err
	}
	defer end()
	s := &http.Server{Addr: addr, Handler: likeHandler(like), ReadHeaderTimeout: patience}
	go func() {
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		_ = s.Shutdown(ctx) // whatever is left ends with the process
	}()
	if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-ctx.Done()
	return nil
}

func openFront(ctx context.Context, backend string) (like likeFunc, end func(), err error) {
	const naive, scripted = "naive=", "redis="
	if len(backend) > len(scripted) && backend[:len(scripted)] == scripted {
		c := redisClient(backend[len(scripted):], redisSessions)
		script := redis.NewScript(likeScript)
		return func(ctx context.Context, item, user int64) (int64, error) {
			return redisLike(ctx, c, script, item, user)
		}, func() { _ = c.Close() }, nil
	}
	config, err := pgxpool.ParseConfig(backend[len(naive):])
	if err != nil {
		return nil, nil, err
	}
	config.MaxConns = naiveSessions
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, item, user int64) (int64, error) { return naiveLike(ctx, pool, item, user) }, pool.Close, nil
}

// naiveLike is the transaction of the design documents as they write it.
func naiveLike(ctx context.Context, pool *pgxpool.Pool, item, user int64) (count int64, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		added, err := tx.Exec(ctx, `insert into user_likes (user_id, item_id, item_type) values ($1, $2, 1) on conflict do nothing`, user, item)
		if err != nil {
			return err
		}
		if added.RowsAffected() == 0 {
			return tx.QueryRow(ctx, `select like_count from counters where item_id = $1 and item_type = 1`, item).Scan(&count)
		}
		return tx.QueryRow(ctx, `insert into counters (item_id, item_type, like_count) values ($1, 1, 1)
			on conflict (item_id, item_type) do update set like_count = counters.like_count + 1, updated_at = now()
			returning like_count`, item).Scan(&count)
	})
	return count, err
}

// likeHandler is POST /like with {"item":1,"user":2}.
func likeHandler(like likeFunc) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /like", func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Item, User int64 }
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		count, err := like(r.Context(), in.Item, in.User)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]int64{"count": count}) // a client that is gone needs none
	})
	return mux
}

// frontScript likes through a front.
func frontScript(addr string, t Traffic) func(int, *tally) *script {
	return func(connection int, to *tally) *script {
		p := newPicker(t, connection)
		var body []byte
		return &script{to: to, good: status200, next: func(b []byte) ([]byte, int64) {
			item, user := p.like()
			body = strconv.AppendInt(append(body[:0], `{"item":`...), item, 10)
			body = append(strconv.AppendInt(append(body, `,"user":`...), user, 10), '}')
			return post(b, addr, "/like", "", body), 1
		}}
	}
}

func status200(status int, _ []byte) bool { return status == http.StatusOK }

// post appends a request with a JSON body.
func post(b []byte, host, path, headers string, body []byte) []byte {
	b = append(append(append(append(b, "POST "...), path...), " HTTP/1.1\r\nHost: "...), host...)
	b = append(append(b, headers...), "\r\nContent-Type: application/json\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	return append(append(b, "\r\n\r\n"...), body...)
}

// naive measures the documents' transaction behind a handler.
func (l *lab) naive(ctx context.Context, t Traffic, connections int, d time.Duration) (Sample, error) {
	s := documents()
	s.name = "naive handler"
	return l.pg.round(ctx, s, func(name string) (out Sample, unsure int64, err error) {
		f, err := l.front(ctx, "naive", l.pg.dsn(name))
		if err != nil {
			return out, 0, err
		}
		out, unsure, err = drive(ctx, f.addr, connections, 0, d, map[string]int{server: f.pid(), database: l.pg.pid}, frontScript(f.addr, t))
		if err = errors.Join(err, f.stop()); err != nil {
			return out, 0, fmt.Errorf("%w\n%s", err, f.tail())
		}
		return out, unsure, nil
	})
}
