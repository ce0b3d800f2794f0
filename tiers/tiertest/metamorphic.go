package tiertest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

// The sizes of a metamorphic run: few users and items, so that operations meet.
const (
	metaUsers, metaItems = 6, 4
	metaEvents           = 12
	metaOps              = 400
)

// Seed returns the seed of a randomised suite: LIKECTL_SEED, or a new one.
func Seed() uint64 {
	if s, err := strconv.ParseUint(os.Getenv("LIKECTL_SEED"), 10, 64); err == nil {
		return s
	}
	return uint64(time.Now().UnixNano())
}

// scale returns a number from the environment, or its default.
func scale(name string, def int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return def
}

// Metamorphic runs one random list of operations on the cluster and on the
// oracle and requires equal answers: at every step where the contract knows no
// staleness, and at the end after settling everywhere. A list that fails is
// reduced to the few operations that matter. LIKECTL_SEED repeats a run,
// LIKECTL_OPS makes it longer.
func Metamorphic(t *testing.T, h Harness) {
	c := h.Open(t, instances)
	seed, ops := Seed(), scale("LIKECTL_OPS", metaOps)
	t.Run("one client", func(t *testing.T) {
		require.NoError(t, metamorphic(newEnv(t, c), seed, ops), "LIKECTL_SEED=%d LIKECTL_OPS=%d", seed, ops)
	})
	t.Run("several clients with users of their own", func(t *testing.T) {
		require.NoError(t, metaClients(newEnv(t, c), seed, ops), "LIKECTL_SEED=%d LIKECTL_OPS=%d", seed, ops)
	})
}

func metamorphic(e *env, seed uint64, ops int) error {
	program := generate(rand.New(rand.NewPCG(seed, 1)), ops, len(e.Services), e.Restart != nil)
	err := newPair(e).run(program)
	if err == nil {
		return nil
	}
	program = reduce(program, func(p []string) bool { return newPair(e).run(p) != nil })
	return fmt.Errorf("%w\nthe same with fewer operations: %w\n%s", err, newPair(e).run(program), strings.Join(program, "\n"))
}

// generate writes a program, one call a line: the instance, then what it is asked.
// Several mutations of one call are separated by semicolons.
func generate(rng *rand.Rand, n, instances int, restarts bool) []string {
	mutation := func() string {
		edge := fmt.Sprintf("u%d i%d", 1+rng.IntN(metaUsers), 1+rng.IntN(metaItems))
		if rng.IntN(5) == 0 {
			view := "view " + edge + fmt.Sprintf(" e%d", 1+rng.IntN(metaEvents))
			if rng.IntN(4) == 0 {
				return "replay " + view + fmt.Sprintf(" @%d", past(rng.IntN(50)))
			}
			return view
		}
		op := "like "
		if rng.IntN(2) == 0 {
			op = "unlike "
		}
		switch rng.IntN(8) {
		case 0:
			return "replay " + op + edge + fmt.Sprintf(" @%d", past(rng.IntN(50)))
		case 1: // rarely from the future, far enough apart for issues between
			if rng.IntN(4) == 0 {
				at := time.Date(2060, 1, 1, rng.IntN(50), 0, 0, 0, time.UTC)
				return "replay " + op + edge + fmt.Sprintf(" @%d", likes.ClockAt(at, 2))
			}
		}
		return op + edge
	}
	program := make([]string, n)
	for i := range program {
		var line string
		switch k := rng.IntN(100); {
		case k < 60:
			line = mutation()
		case k < 70:
			line = mutation()
			for range 1 + rng.IntN(6) {
				line += "; " + mutation()
			}
		case k < 80:
			line = "counts"
		case k < 90:
			line = fmt.Sprintf("has u%d", 1+rng.IntN(metaUsers))
		case k < 98:
			line = fmt.Sprintf("likers i%d", 1+rng.IntN(metaItems))
		case k < 99 && restarts:
			line = "restart"
		default:
			line = "settle"
		}
		program[i] = fmt.Sprintf("%d %s", rng.IntN(instances), line)
	}
	return program
}

// reduce removes ever smaller runs of lines as long as the rest still fails:
// delta debugging (Zeller and Hildebrandt, 2002) without its complements.
func reduce(program []string, fails func([]string) bool) []string {
	const tries = 400 // a reduction that takes longer is not worth the wait
	left := tries
	for size := len(program) / 2; size > 0; size /= 2 {
		for from := 0; from < len(program) && left > 0; left-- {
			rest := slices.Concat(program[:from], program[min(from+size, len(program)):])
			if fails(rest) {
				program = rest
			} else {
				from += size
			}
		}
	}
	return program
}

// metaClients runs a program per client at the same time, each on users and events of its
// own but on shared items. Answers differ from run to run, the end must not.
func metaClients(e *env, seed uint64, ops int) error {
	const clients = 4
	shared := newPair(e)
	errs := make(chan error, clients)
	for client := range clients {
		p := newPair(e)
		p.items, p.oracle, p.alone = shared.items, shared.oracle, false
		program := generate(rand.New(rand.NewPCG(seed, uint64(2+client))), ops/clients, len(e.Services), false)
		go func() { errs <- errors.Join(p.run(program), p.compare()) }()
	}
	var all []error
	for range clients {
		all = append(all, <-errs)
	}
	if e.Settle != nil {
		all = append(all, e.Settle(e.Context()))
	}
	for n := range len(e.Services) {
		all = append(all, shared.counts(n))
		for item := range shared.items {
			all = append(all, shared.likers(n, item))
		}
	}
	return errors.Join(all...)
}
