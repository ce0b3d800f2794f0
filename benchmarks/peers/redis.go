package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	containers "likectl/testcontainers"
)

// likeScript likes KEYS[1]'s item as ARGV[1]: the set of its users and its count are
// changed together, and only by a first like. It returns the count.
const likeScript = `if redis.call('sadd', KEYS[1], ARGV[1]) == 1 then return redis.call('incr', KEYS[2]) end
return tonumber(redis.call('get', KEYS[2]))`

// auditScript compares every count with its set.
const auditScript = `local edges, counted, drifted = 0, 0, 0
for _, key in ipairs(redis.call('keys', 'l:*')) do
	local n, c = redis.call('scard', key), tonumber(redis.call('get', 'n' .. string.sub(key, 2)) or '0')
	edges, counted = edges + n, counted + c
	if n ~= c then drifted = drifted + 1 end
end
return {edges, counted, drifted}`

// redisServer is a Redis that keeps an append-only file.
type redisServer struct {
	*containers.Redis
	addr string
	pid  int
}

func openRedis(ctx context.Context, fsync string) (r *redisServer, err error) {
	server, err := containers.OpenRedis(ctx, "--appendonly", "yes", "--appendfsync", fsync)
	if err != nil {
		return nil, err
	}
	r = &redisServer{Redis: server}
	ip, e1 := server.IP(ctx)
	pid, e2 := server.ProcessID(ctx)
	if err := errors.Join(e1, e2); err != nil {
		return nil, errors.Join(err, server.Close()) //nolint:contextcheck // removing must outlive an interrupt
	}
	r.addr, r.pid = net.JoinHostPort(ip, "6379"), pid
	return r, nil
}

func (r *redisServer) close() error { return r.Close() }

// client returns a client with so many connections; close it.
func redisClient(addr string, connections int) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, PoolSize: connections, MaxRetries: -1, ReadTimeout: 30 * time.Second, PoolTimeout: 30 * time.Second})
}

// durability reads the settings back.
func (r *redisServer) durability(ctx context.Context, fsync string) (all []Setting, err error) {
	c := redisClient(r.addr, 1)
	defer func() { err = errors.Join(err, c.Close()) }()
	for _, name := range []string{"appendonly", "appendfsync"} {
		value, err := c.ConfigGet(ctx, name).Result()
		if err != nil {
			return nil, err
		}
		all = append(all, Setting{"Redis " + fsync, name, value[name]})
	}
	return all, demand(all, "appendonly", "yes", "appendfsync", fsync)
}

// redisLike likes once.
func redisLike(ctx context.Context, c *redis.Client, script *redis.Script, item, user int64) (count int64, err error) {
	id := strconv.FormatInt(item, 10)
	return script.Run(ctx, c, []string{"l:" + id, "n:" + id}, user).Int64()
}

// direct measures callers of the script, each with a connection of its own.
func (r *redisServer) direct(ctx context.Context, t Traffic, n int, d time.Duration) (Sample, error) {
	return r.round(ctx, func(c *redis.Client) (Sample, int64, error) {
		c = redisClient(r.addr, n)
		script := redis.NewScript(likeScript)
		pickers := make([]*picker, n)
		for i := range pickers {
			pickers[i] = newPicker(t, i)
		}
		m := newMeter(true, map[string]int{database: r.pid})
		s, err := callers(ctx, n, d, func(ctx context.Context, i int) error {
			item, user := pickers[i].like()
			_, err := redisLike(ctx, c, script, item, user)
			return err
		})
		s.CPU = m.perLike(s.Done)
		return s, 0, errors.Join(err, c.Close())
	})
}

// behindFront measures the script behind a thin HTTP handler.
func (r *redisServer) behindFront(ctx context.Context, l *lab, t Traffic, connections int, d time.Duration) (Sample, error) {
	return r.round(ctx, func(*redis.Client) (s Sample, unsure int64, err error) {
		f, err := l.front(ctx, "redis", r.addr)
		if err != nil {
			return s, 0, err
		}
		defer func() { err = errors.Join(err, f.stop()) }()
		return drive(ctx, f.addr, connections, 0, d, map[string]int{server: f.pid(), database: r.pid}, frontScript(f.addr, t))
	})
}

// round measures on an empty server and compares counts with sets. Nobody counts
// Redis's fsyncs; the log is its append-only file.
func (r *redisServer) round(ctx context.Context, run func(*redis.Client) (Sample, int64, error)) (s Sample, err error) {
	c := redisClient(r.addr, 1)
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.FlushAll(ctx).Err(); err != nil {
		return s, err
	}
	before, err := aofSize(ctx, c)
	if err != nil {
		return s, err
	}
	s, unsure, err := run(c)
	if err != nil {
		return s, err
	}
	after, err := aofSize(ctx, c)
	if err != nil {
		return s, err
	}
	if after > before { // else it was rewritten meanwhile
		s.WAL = float64(after-before) / float64(max(1, s.Done))
	}
	sums, err := c.Eval(ctx, auditScript, nil).Int64Slice()
	if err != nil {
		return s, fmt.Errorf("compare counts with sets: %w", err)
	}
	return s, account{edges: sums[0], counted: sums[1], drifted: sums[2]}.settle(s.Done, unsure)
}

// aofSize returns the size of the append-only file.
func aofSize(ctx context.Context, c *redis.Client) (int64, error) {
	info, err := c.InfoMap(ctx, "persistence").Result()
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(info["Persistence"]["aof_current_size"], 10, 64)
}
