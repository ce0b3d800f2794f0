package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"
)

// Systems, as they are called in results.
const (
	Documents    = "pgbench documents"
	OneStatement = "pgbench one statement"
	Trigger      = "pgbench trigger"
	Recount      = "pgbench recount"
	Naive        = "naive handler"
	BaseDurable  = "PocketBase durable"
	BaseShipped  = "PocketBase as shipped"
	BaseCount    = "PocketBase count"
	RedisAlways  = "Redis always"
	RedisEvery   = "Redis everysec"
	FrontAlways  = "Redis always over HTTP"
	FrontEvery   = "Redis everysec over HTTP"
	Interface    = "likectl interface"
	HTTP         = "likectl HTTP"
	Batch        = "likectl likes:batch"
	Alone        = "likectl one caller"
	Small        = "likectl few rows"
	Large        = "likectl many rows"
	Cycle        = "likectl checkpoint cycle"
	Count        = "likectl count"
	Counts       = "likectl counts of 50"
	Load         = "load generator"
	LoadAtRate   = "load generator at 20000/s"
	Raw          = "raw socket client"
)

// Case is one system under one load.
type Case struct {
	System  string  `json:"system"`
	Traffic Traffic `json:"traffic"`
	Clients int     `json:"clients"`
	// Scan: it was measured once, to find the best number of clients.
	Scan    bool     `json:"scan,omitempty"`
	Samples []Sample `json:"samples"`

	run func(ctx context.Context, l *lab, d time.Duration) (Sample, error)
}

// Name is the case in words.
func (c *Case) Name() string {
	return fmt.Sprintf("%s, %s, %d clients", c.System, c.Traffic, c.Clients)
}

// plan says what is measured, and for how long.
type plan struct {
	only *regexp.Regexp
	// length is one case in one round, scan one in the search for the best number
	// of clients, cycle the one long run after a checkpoint.
	length, scan, cycle time.Duration
	rounds              int
	// few and many are the likes of the grown databases.
	few, many int64
}

// A smoke run shows that everything works; its numbers are worth little.
func shortPlan() plan {
	return plan{length: 600 * time.Millisecond, scan: time.Second, cycle: 2 * time.Second, rounds: 1, few: 20_000, many: 200_000}
}

// Six rounds are the fewest whose range holds the median with 95 % confidence.
func fullPlan() plan {
	return plan{length: 2 * time.Second, scan: 2 * time.Second, cycle: time.Minute, rounds: 6, few: 100_000, many: 10_000_000}
}

// scanned are the ways to use Postgres, each with all numbers of clients that are
// tried. The best one and the last take part in the rounds.
func scanned() []*Case {
	clients := [...]int{1, 4, 16, 64}
	var all []*Case
	for _, s := range []struct {
		name string
		of   scheme
		on   []Traffic
	}{
		{Documents, documents(), []Traffic{Hot, Uniform, Zipf}},
		{OneStatement, oneStatement(), []Traffic{Hot, Uniform, Zipf}},
		{Trigger, triggers(), []Traffic{Hot, Uniform}},
	} {
		for _, t := range s.on {
			for _, n := range clients {
				all = append(all, &Case{System: s.name, Traffic: t, Clients: n, Scan: true, run: func(ctx context.Context, l *lab, d time.Duration) (Sample, error) {
					return l.pg.pgbench(ctx, s.of, t, n, d)
				}})
			}
		}
	}
	return all
}

// fixed are the cases of every round besides the scanned ones.
func (p *plan) fixed(few, many *grown) []*Case {
	var all []*Case
	add := func(system string, t Traffic, n int, run func(ctx context.Context, l *lab, d time.Duration) (Sample, error)) {
		all = append(all, &Case{System: system, Traffic: t, Clients: n, run: run})
	}
	for _, t := range []Traffic{Hot, Uniform, Zipf} {
		for _, n := range []int{256, 1024} {
			add(Interface, t, n, func(ctx context.Context, l *lab, d time.Duration) (Sample, error) { return l.interfaced(ctx, t, n, d) })
		}
		for _, n := range []int{64, 256} {
			add(HTTP, t, n, func(ctx context.Context, l *lab, d time.Duration) (Sample, error) { return l.overHTTP(ctx, t, n, 1, d) })
		}
	}
	for _, t := range []Traffic{Hot, Uniform} {
		add(Batch, t, 16, func(ctx context.Context, l *lab, d time.Duration) (Sample, error) {
			return l.overHTTP(ctx, t, 16, 50, d)
		})
		add(Recount, t, 16, func(ctx context.Context, l *lab, d time.Duration) (Sample, error) {
			return l.pg.pgbench(ctx, recount(), t, 16, d)
		})
		add(Naive, t, 64, func(ctx context.Context, l *lab, d time.Duration) (Sample, error) { return l.naive(ctx, t, 64, d) })
		add(BaseDurable, t, 64, func(ctx context.Context, l *lab, d time.Duration) (Sample, error) {
			return l.baseLikes(ctx, durable, t, 64, d)
		})
		add(BaseShipped, t, 64, func(ctx context.Context, l *lab, d time.Duration) (Sample, error) {
			return l.baseLikes(ctx, asShipped, t, 64, d)
		})
		for _, n := range []int{64, 256} {
			add(RedisAlways, t, n, func(ctx context.Context, l *lab, d time.Duration) (Sample, error) {
				return l.always.direct(ctx, t, n, d)
			})
		}
		add(RedisEvery, t, 256, func(ctx context.Context, l *lab, d time.Duration) (Sample, error) {
			return l.everysec.direct(ctx, t, 256, d)
		})
		add(FrontAlways, t, 64, func(ctx context.Context, l *lab, d time.Duration) (Sample, error) {
			return l.always.behindFront(ctx, l, t, 64, d)
		})
		add(FrontEvery, t, 64, func(ctx context.Context, l *lab, d time.Duration) (Sample, error) {
			return l.everysec.behindFront(ctx, l, t, 64, d)
		})
	}
	add(Alone, Uniform, 1, func(ctx context.Context, l *lab, d time.Duration) (Sample, error) { return l.alone(ctx, d) })
	add(Small, "default", 256, func(ctx context.Context, l *lab, d time.Duration) (Sample, error) {
		return l.growing(ctx, *few, 256, d)
	})
	add(Large, "default", 256, func(ctx context.Context, l *lab, d time.Duration) (Sample, error) {
		return l.growing(ctx, *many, 256, d)
	})
	add(BaseCount, Hot, 64, func(ctx context.Context, l *lab, d time.Duration) (Sample, error) { return l.baseCount(ctx, 64, d) })
	add(Count, Hot, 64, func(ctx context.Context, l *lab, d time.Duration) (Sample, error) {
		return l.counting(ctx, *many, false, 64, d)
	})
	add(Counts, "default", 64, func(ctx context.Context, l *lab, d time.Duration) (Sample, error) {
		return l.counting(ctx, *many, true, 64, d)
	})
	add(Raw, "", 64, func(ctx context.Context, l *lab, d time.Duration) (Sample, error) { return l.raw(ctx, 64, d) })
	add(Load, "", 64, func(ctx context.Context, l *lab, d time.Duration) (Sample, error) { return l.generated(ctx, 64, 0, d) })
	add(LoadAtRate, "", 64, func(ctx context.Context, l *lab, d time.Duration) (Sample, error) {
		return l.generated(ctx, 64, 20_000, d)
	})
	return all
}

// wanted removes the cases that -only leaves out.
func (p *plan) wanted(all []*Case) []*Case {
	return slices.DeleteFunc(all, func(c *Case) bool { return !p.only.MatchString(c.Name()) })
}

// measure runs everything: the scan, the grown databases, the rounds, the cycle.
func (p *plan) measure(ctx context.Context, l *lab, progress io.Writer) ([]*Case, error) {
	say := func(format string, args ...any) { fmt.Fprintf(progress, format+"\n", args...) } //nolint:errcheck // progress is not worth failing for
	try := func(c *Case, d time.Duration, where string) error {
		began := time.Now()
		s, err := c.run(ctx, l, d)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name(), err)
		}
		c.Samples = append(c.Samples, s)
		say("%-8s %-50s %10.0f/s  %5.1f s", where, c.Name(), s.Rate, time.Since(began).Seconds())
		return nil
	}
	scan := p.wanted(scanned())
	for _, c := range scan {
		if err := try(c, p.scan, "scan"); err != nil {
			return nil, err
		}
	}
	var few, many grown
	rounds := slices.Concat(best(scan), p.wanted(p.fixed(&few, &many)))
	for _, g := range []struct {
		into *grown
		rows int64
		uses []string
	}{{&few, p.few, []string{Small}}, {&many, p.many, []string{Large, Count, Counts}}} {
		if !slices.ContainsFunc(rounds, func(c *Case) bool { return slices.Contains(g.uses, c.System) }) {
			continue
		}
		began := time.Now()
		var err error
		if *g.into, err = l.grow(ctx, g.rows); err != nil {
			return nil, err
		}
		say("grow     %d likes in %.1f s", g.rows, time.Since(began).Seconds())
	}
	for round := range p.rounds {
		for i := range rounds {
			if round%2 == 1 {
				i = len(rounds) - 1 - i // whatever drifts on the machine meets both ends
			}
			if err := try(rounds[i], p.length, fmt.Sprintf("%d of %d", round+1, p.rounds)); err != nil {
				return nil, err
			}
		}
	}
	cycle := p.wanted([]*Case{{System: Cycle, Traffic: "default", Clients: 256, run: func(ctx context.Context, l *lab, d time.Duration) (Sample, error) {
		return l.cycle(ctx, many, 256, d)
	}}})
	for _, c := range cycle {
		if many.name == "" {
			break
		}
		if err := try(c, p.cycle, "once"); err != nil {
			return nil, err
		}
		rounds = append(rounds, c)
	}
	for _, g := range []grown{few, many} {
		if g.name == "" {
			continue
		}
		if err := l.auditGrown(ctx, g); err != nil {
			return nil, fmt.Errorf("%d likes and what was added: %w", g.rows, err)
		}
	}
	return append(scan, rounds...), nil
}

// best returns, for each system and traffic that was scanned, the case with the best
// number of clients and that with the most.
func best(scan []*Case) []*Case {
	var out []*Case
	take := func(c *Case) {
		out = append(out, &Case{System: c.System, Traffic: c.Traffic, Clients: c.Clients, run: c.run})
	}
	for i := 0; i < len(scan); {
		from := i
		for i < len(scan) && scan[i].System == scan[from].System && scan[i].Traffic == scan[from].Traffic {
			i++
		}
		group := scan[from:i]
		top := slices.MaxFunc(group, func(a, b *Case) int { return int(a.Samples[0].Rate - b.Samples[0].Rate) })
		take(top)
		if last := group[len(group)-1]; last != top {
			take(last)
		}
	}
	return out
}
