package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"
)

// pgbench measures a scheme with Postgres's own load generator, inside the server's
// container and over its socket: statements are prepared, no network is between.
func (d *databases) pgbench(ctx context.Context, s scheme, t Traffic, clients int, length time.Duration) (Sample, error) {
	return d.round(ctx, s, func(name string) (Sample, int64, error) {
		if err := d.server.Copy(ctx, "/tmp/like.sql", []byte(pick(t)+s.like)); err != nil {
			return Sample{}, 0, err
		}
		// The time to connect is part of pgbench's duration, and not of its rate.
		seconds := int(math.Ceil(length.Seconds())) + clients/connectsPerSecond
		command := fmt.Sprintf("pgbench -U postgres -h /var/run/postgresql -n -M prepared -f /tmp/like.sql -c %d -j %d -T %d %s && times",
			clients, min(clients, 2), seconds, name)
		m := newMeter(false, map[string]int{database: d.pid})
		text, err := d.server.Exec(ctx, "sh", "-c", command)
		if err != nil {
			return Sample{}, 0, err
		}
		out, err := parsePgbench(text)
		if err != nil {
			return out, 0, err
		}
		used := out.CPU[client]
		out.CPU = m.perLike(out.Done)
		out.CPU[client] = used
		return out, 0, nil
	})
}

// connectsPerSecond is how many sessions Postgres opens in a second at least, on a
// machine that is busy with other things.
const connectsPerSecond = 40

// pick is the head of a script, which draws what is liked. pgbench's Zipf
// distribution is that of [rand.Zipf] with the same exponent.
func pick(t Traffic) string {
	item := fmt.Sprintf("random(1, %d)", items)
	switch t {
	case Hot:
		item = "1"
	case Zipf:
		item = fmt.Sprintf("random_zipfian(1, %d, %g)", items, exponent)
	case Uniform:
	}
	return fmt.Sprintf("\\set item %s\n\\set user random(1, %d)\n", item, int64(users))
}

var (
	pgbenchTPS     = regexp.MustCompile(`(?m)^tps = ([0-9.]+)`)
	pgbenchDone    = regexp.MustCompile(`(?m)^number of transactions actually processed: ([0-9]+)`)
	pgbenchFailed  = regexp.MustCompile(`(?m)^number of failed transactions: ([0-9]+)`)
	pgbenchLatency = regexp.MustCompile(`(?m)^latency average = ([0-9.]+) ms`)
	// shellTimes is the line of the shell's children: user and system time.
	shellTimes = regexp.MustCompile(`(?m)^([0-9]+)m([0-9.]+)s ([0-9]+)m([0-9.]+)s\n?\z`)
)

// parsePgbench reads what pgbench and the shell's times print.
func parsePgbench(text string) (s Sample, err error) {
	number := func(re *regexp.Regexp, group int) float64 {
		found := re.FindStringSubmatch(text)
		if found == nil {
			err = fmt.Errorf("pgbench printed no %s: %.2000s", re, text)
			return 0
		}
		v, e := strconv.ParseFloat(found[group], 64)
		if e != nil {
			err = e
		}
		return v
	}
	if done := number(pgbenchDone, 1); err == nil && done == 0 {
		return s, errors.New("pgbench had no time for a single transaction: its sessions took it all to open")
	}
	s.Rate, s.Done = number(pgbenchTPS, 1), int64(number(pgbenchDone, 1))
	seconds := number(shellTimes, 1)*60 + number(shellTimes, 2) + number(shellTimes, 3)*60 + number(shellTimes, 4)
	if failed := number(pgbenchFailed, 1); err == nil && failed > 0 {
		err = fmt.Errorf("%.0f transactions of pgbench failed", failed)
	}
	s.Extra = map[string]float64{"mean_ms": number(pgbenchLatency, 1)}
	s.CPU = map[string]float64{client: perOne(time.Duration(seconds*float64(time.Second)), s.Done)}
	return s, err
}
