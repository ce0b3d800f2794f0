package main

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// servers opens the Postgres server of a test.
func servers(t *testing.T) *lab {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a real server in a container; run without -short")
	}
	pg, err := openDatabases(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pg.close(context.WithoutCancel(t.Context()))) })
	return &lab{pg: pg}
}

func TestSystemsOnPostgres(t *testing.T) {
	l := servers(t)
	all, err := l.pg.durability(t.Context())
	require.NoError(t, err)
	require.Contains(t, all, Setting{"Postgres", "fsync", "on"})
	for _, s := range []scheme{documents(), oneStatement(), triggers(), recount()} {
		for _, traffic := range []Traffic{Hot, Uniform, Zipf} {
			got, err := l.pg.pgbench(t.Context(), s, traffic, 4, time.Second)
			require.NoError(t, err, s.name)
			require.Positive(t, got.Rate, s.name)
			require.Positive(t, got.CPU[client], s.name)
			require.Positive(t, got.CPU[database], s.name)
			require.Greater(t, got.WAL, 100.0, s.name)
			if traffic == Hot && s.name == documents().name {
				require.InDelta(t, 1, got.Syncs, 0.1, "the row's lock is held while the log is flushed: a like each")
			}
		}
	}
	got, err := l.interfaced(t.Context(), Hot, 64, time.Second)
	require.NoError(t, err)
	require.Less(t, got.Syncs, 0.2, "likes share their flushes")
	require.Positive(t, got.P99)
	got, err = l.alone(t.Context(), time.Second)
	require.NoError(t, err)
	require.InDelta(t, 1, got.Syncs, 0.1, "who is alone shares with nobody")
	require.Positive(t, got.Extra["single_p99_ms"])
}

// A number is published only if counts, edges and answers agree.
func TestOneWrongCountFailsTheRound(t *testing.T) {
	l := servers(t)
	s := documents()
	for _, c := range []struct{ harm, want string }{
		{"update counters set like_count = like_count + 1 where item_id = 2", "1 counts differ from their edges: 4 counted, 3 edges"},
		{"update counters set like_count = 3 - like_count", "2 counts differ from their edges: 3 counted, 3 edges"},
		{"insert into counters values (7, 1, 1)", "1 counts differ from their edges: 4 counted, 3 edges"},
		{"delete from user_likes where item_id = 2", "1 counts differ from their edges: 3 counted, 1 edges"},
		{"delete from user_likes where item_id = 2; delete from counters where item_id = 2", "3 likes were acknowledged and 0 had no good answer, but there are 1 edges"},
		{"insert into user_likes (user_id, item_id, item_type) values (9, 9, 1); insert into counters values (9, 1, 1)", "but there are 4 edges"},
	} {
		_, err := l.pg.round(t.Context(), s, func(name string) (Sample, int64, error) {
			return Sample{Done: 3}, 0, l.pg.on(t.Context(), name, func(conn *pgx.Conn) error {
				_, err := conn.Exec(t.Context(), `insert into user_likes (user_id, item_id, item_type) values (1, 1, 1), (1, 2, 1), (2, 2, 1);
					insert into counters values (1, 1, 1), (2, 1, 2);`+c.harm)
				return err
			})
		})
		require.ErrorContains(t, err, c.want, c.harm)
	}
}

func TestOneWrongCountInRedisFailsTheRound(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real server in a container; run without -short")
	}
	r, err := openRedis(t.Context(), "always")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.close()) })
	_, err = r.durability(t.Context(), "always")
	require.NoError(t, err)
	_, err = r.durability(t.Context(), "everysec")
	require.ErrorContains(t, err, `appendfsync is "always", want "everysec"`)

	got, err := r.direct(t.Context(), Zipf, 16, 500*time.Millisecond)
	require.NoError(t, err)
	require.Positive(t, got.Rate)
	require.Positive(t, got.CPU[database])
	_, err = r.round(t.Context(), func(c *redis.Client) (Sample, int64, error) {
		for user := range int64(3) {
			if _, err := redisLike(t.Context(), c, redis.NewScript(likeScript), 1, user); err != nil {
				return Sample{}, 0, err
			}
		}
		return Sample{Done: 3}, 0, c.Incr(t.Context(), "n:1").Err()
	})
	require.ErrorContains(t, err, "1 counts differ from their edges: 4 counted, 3 edges")
}

func TestParsePgbench(t *testing.T) {
	const text = `number of transactions actually processed: 2000
number of failed transactions: 0 (0.000%)
latency average = 1.500 ms
initial connection time = 9.1 ms
tps = 1033.5 (without initial connection time)
0m0.010000s 0m0.020000s
0m0.150000s 1m0.050000s
`
	s, err := parsePgbench(text)
	require.NoError(t, err)
	require.InDelta(t, 1033.5, s.Rate, 0)
	require.Equal(t, int64(2000), s.Done)
	require.InDelta(t, 60.2e6/2000, s.CPU[client], 0.001, "of the children, in the last line")
	require.InDelta(t, 1.5, s.Extra["mean_ms"], 0)
	for old, want := range map[string]string{
		"transactions: 0":    "1 transactions of pgbench failed",
		"processed: 2000":    "no time for a single transaction",
		"tps = 1033.5":       "pgbench printed no",
		"0m0.150000s 1m0.05": "pgbench printed no",
	} {
		now := strings.NewReplacer("0", "1").Replace(old)
		switch old {
		case "processed: 2000":
			now = "processed: 0"
		case "tps = 1033.5", "0m0.150000s 1m0.05":
			now = ""
		}
		_, err := parsePgbench(strings.Replace(text, old, now, 1))
		require.ErrorContains(t, err, want)
	}
}

// made makes a case with a sample a round.
func made(system string, t Traffic, clients int, rates ...float64) *Case {
	c := &Case{System: system, Traffic: t, Clients: clients}
	for _, r := range rates {
		c.Samples = append(c.Samples, Sample{Rate: r, Syncs: 1, CPU: map[string]float64{server: 10, database: 25}})
	}
	return c
}

func TestTargetsArePairedByRound(t *testing.T) {
	// The machine is half as fast in some rounds, which meets both: the ratio stays.
	targets := judge([]*Case{
		made(Documents, Hot, 4, 100, 50, 100, 50, 100, 50), made(Documents, Hot, 64, 10, 5, 10, 5, 10, 5),
		made(Interface, Hot, 1024, 2100, 1050, 2100, 1050, 2100, 1050), made(Interface, Hot, 256, 1, 1, 1, 1, 1, 1),
		made(HTTP, Hot, 64, 500, 250, 500, 250, 500, 250),
	})
	byWhat := map[string]Target{}
	for _, x := range targets {
		byWhat[x.What] = x
	}
	best := byWhat["interface, one hot item, over the documents' transaction at its best"]
	require.InDelta(t, 21, best.Value, 1e-9)
	require.InDelta(t, 21, best.Low, 1e-9)
	require.True(t, best.Pass)
	require.Contains(t, best.Note, "1024 clients over pgbench documents, hot, 4 clients")
	require.True(t, byWhat["interface, one hot item, over the documents' transaction at 64 clients"].Pass)
	require.False(t, byWhat["HTTP, one hot item, over the documents' transaction at its best"].Pass)
	cpu := byWhat["CPU of server and database per like, single requests"]
	require.InDelta(t, 35, cpu.Value, 1e-9)
	require.False(t, cpu.Pass, "35 us are more than 30")
	require.False(t, byWhat["256 in flight: likes per fsync"].Pass)
	uncounted := made(Interface, Hot, 256, 1, 1)
	uncounted.Samples[0].Syncs, uncounted.Samples[1].Syncs = 0, 0
	require.Empty(t, judge([]*Case{uncounted}))
	require.NotContains(t, byWhat, "likectl HTTP: hot over uniform", "a target without its cases is left out")
}

func TestTheUpperBoundDecidesWhereItIsTheTarget(t *testing.T) {
	c := made(Alone, Uniform, 1, 1, 1, 1, 1, 1, 1)
	for i := range c.Samples {
		c.Samples[i].P50, c.Samples[i].P99 = 1, 1
		c.Samples[i].Extra = map[string]float64{"single_p50_ms": 1, "single_p99_ms": 1}
	}
	require.True(t, judge([]*Case{c})[1].Pass)
	c.Samples[3].P99 = 1.3
	upper := judge([]*Case{c})[1]
	require.InDelta(t, 1, upper.Value, 1e-9)
	require.False(t, upper.Pass, "the median is 1, but 1.3 cannot be excluded")
}

func TestTheBestNumberOfClientsAndTheMostTakePart(t *testing.T) {
	got := best([]*Case{
		made(Documents, Hot, 1, 5), made(Documents, Hot, 16, 7), made(Documents, Hot, 64, 6),
		made(Documents, Uniform, 1, 5), made(Documents, Uniform, 64, 8),
	})
	require.Len(t, got, 3)
	require.Equal(t, []string{"pgbench documents, hot, 16 clients", "pgbench documents, hot, 64 clients", "pgbench documents, uniform, 64 clients"},
		[]string{got[0].Name(), got[1].Name(), got[2].Name()})
}

func TestReport(t *testing.T) {
	cases := []*Case{made(Documents, Hot, 16, 100, 110), made(Interface, Hot, 1024, 2100, 1500)}
	r := Report{Targets: judge(cases), Cases: cases, Rounds: 2, Settings: []Setting{{"Postgres", "fsync", "on"}}}
	var b strings.Builder
	require.NoError(t, r.markdown(&b))
	require.Contains(t, b.String(), "A smoke run")
	require.Contains(t, b.String(), "| pgbench documents | hot | 16 | 105 | 100 to 110 |")
	require.Contains(t, b.String(), "**fail**")
	require.Contains(t, b.String(), "| Postgres | fsync | on |")
	dir := t.TempDir()
	require.NoError(t, r.store(dir+"/"+r.name()))
	require.FileExists(t, dir+"/"+r.name()+".json")
	require.Equal(t, "1,234,567", digits(1234567))
}

func TestPlansName(t *testing.T) {
	p := shortPlan()
	p.only = regexp.MustCompile("^likectl interface, hot")
	require.Len(t, p.wanted(p.fixed(new(grown), new(grown))), 2)
	require.Empty(t, p.wanted(scanned()))
	names := map[string]bool{}
	p.only = regexp.MustCompile("")
	for _, c := range append(scanned(), p.fixed(new(grown), new(grown))...) {
		require.False(t, names[c.Name()], "%s twice", c.Name())
		names[c.Name()] = true
	}
}
