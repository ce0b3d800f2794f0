package tier1_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/clock"
	"likectl/pkg/likes"
	"likectl/pkg/store/postgres"
	"likectl/pkg/store/sqlite"
	containers "likectl/testcontainers"
	"likectl/tiers"
	"likectl/tiers/tier1"
)

func TestPostgresForgetsOldEventsAndKeepsTheirCounts(t *testing.T) {
	dsn := containers.SharedPostgres(t).MigratedDatabase(t, "likectl_schema", migrate)
	db, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn, MaxConns: 6, StatementTimeout: 3 * time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	requireForgets(t, db, tiers.Postgres)
}

func TestEmbeddedForgetsOldEventsAndKeepsTheirCounts(t *testing.T) {
	db, err := sqlite.Open(t.Context(), t.TempDir()+"/likes.db")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	requireForgets(t, db, tiers.SQLite)
}

// requireForgets adds more events than one step forgets, to two instances, and
// waits until both together have forgotten them, each once.
func requireForgets(t *testing.T, db tier1.Store, engine tiers.Engine) {
	t.Helper()
	const events = 5000
	type step struct {
		n     int
		begun time.Time
	}
	forgotten := make(chan step, events)
	cfg := limits
	cfg.Retention = time.Second
	hooks := tier1.Hooks{Forgot: func(n int, took time.Duration, err error) {
		if err != nil {
			t.Errorf("forget: %v", err)
		}
		forgotten <- step{n, time.Now().Add(-took)}
	}}
	var instances []*tier1.Service
	for i := range 2 {
		s, err := tier1.Start(db, clock.New(uint16(i)), tiers.Contract(engine), cfg, hooks)
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close(context.Background())) }()
		instances = append(instances, s)
	}
	item := likes.Item{Type: 1, ID: 1}
	add := func(events ...likes.EventID) {
		t.Helper()
		ms := make([]likes.Mutation, len(events))
		for i := range ms {
			ms[i] = likes.Mutation{Op: likes.Add, Edge: likes.Edge{Counter: likes.Views, Item: item}, Event: events[i]}
		}
		for i, r := range instances[0].Apply(t.Context(), ms) {
			require.NoError(t, r.Err, "event %d", i)
			require.Equal(t, likes.Changed, r.Outcome, "event %d", i)
		}
	}
	first, began := likes.NewEventID(time.Now()), time.Now()
	add(first)
	for n := 1; n < events; n += 1000 {
		ids := make([]likes.EventID, min(1000, events-n))
		for i := range ids {
			ids[i] = likes.NewEventID(time.Now())
		}
		add(ids...)
	}
	wait, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for left := events; left > 0; {
		select {
		case s := <-forgotten:
			if left -= s.n; s.n > 0 {
				require.GreaterOrEqual(t, s.begun.Sub(began), cfg.Retention-10*time.Millisecond, "forgotten before its time")
			}
			require.GreaterOrEqual(t, left, 0, "an event was forgotten twice")
		case <-wait.Done():
			require.FailNow(t, "events are not forgotten", "%d left", left)
		}
	}
	counted := instances[1].Counts(t.Context(), likes.Views, []likes.Item{item}, nil)[0]
	require.NoError(t, counted.Err)
	require.Equal(t, int64(events), counted.N, "forgetting changes no count")
	add(first) // nobody remembers it
}

func TestWithoutRetentionThereIsNoService(t *testing.T) {
	db, err := sqlite.Open(t.Context(), t.TempDir()+"/likes.db")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	for name, spoil := range map[string]func(*tier1.Config){
		"retention": func(c *tier1.Config) { c.Retention = 0 },
		"lanes":     func(c *tier1.Config) { c.Tally.Lanes = 0 },
		"max batch": func(c *tier1.Config) { c.Replay.MaxBatch = -1 },
	} {
		c := limits
		spoil(&c)
		_, err := tier1.Start(db, clock.New(1), tiers.Contract(tiers.SQLite), c, tier1.Hooks{})
		require.ErrorIs(t, err, likes.ErrInvalid, name)
		require.ErrorContains(t, err, name)
	}
}
