package bench

import (
	"context"
	"errors"
	"fmt"

	"likectl/benchmarks/result"
)

// Capacity is what a set-up carries within limits.
type Capacity struct {
	// Runs are all runs, in the order of their rates; the last one, if Knee is not
	// 0, is at 70 % of the knee.
	Runs []result.Run
	// Knee is the greatest rate that was carried, 0: none was. The next greater one
	// that was tried is Missed, 0: MaxRate was carried.
	Knee, Missed float64
	// Why says what was missed there.
	Why string
}

// Search bounds the search for the knee.
type Search struct {
	// From is the first rate, To the greatest to be tried.
	From, To float64
	// Precision ends the search: the knee is known to this part of itself.
	Precision float64
	// Within says what a run misses, "" if it is within the limits.
	Within func(*result.Run) string
	// Tried is told of every run.
	Tried func(r *result.Run, missed string)
	// run performs a run; tests have a server of their own.
	run func(context.Context, Config) (result.Run, error)
}

const (
	// growth is by how much the rate grows as long as it is carried.
	growth = 1.6
	// comfortable is the part of the knee at which a system is run: the documents'
	// latencies are promised there.
	comfortable = 0.7
	// tries is how often a rate is tried until it counts as missed: on a shared
	// machine one run may be unlucky.
	tries = 2
)

// ErrLimited says that a search ended at the generator's own limit.
var ErrLimited = errors.New("the generator or the machine was the limit, not the server")

// Find searches the knee: it doubles the rate, roughly, until a limit is missed, and
// halves the gap then. A run in which the generator was the limit ends the search
// with an error, since nothing is known about the server.
func Find(ctx context.Context, c Config, s Search) (out Capacity, err error) {
	if s.From <= 0 || s.To < s.From || s.Precision <= 0 || s.Precision >= 1 {
		return out, errors.New("the search needs a first rate above 0, a last one not below it and a precision between 0 and 1")
	}
	if s.run == nil {
		s.run = Run
	}
	try := func(rate float64) (string, error) {
		c := c
		c.Rate = rate
		var missed string
		limited := 0
		for range tries {
			r, err := s.run(ctx, c)
			if err != nil {
				return "", err
			}
			c.Preload = 0 // once is enough
			missed = s.Within(&r)
			out.Runs = append(out.Runs, r)
			s.Tried(&r, missed)
			if missed == "" {
				return "", nil
			}
			if r.Limited {
				limited++
			}
		}
		if limited == tries && out.Knee == 0 { // above the knee the server leaves it no processor either
			return "", fmt.Errorf("%w: %s", ErrLimited, missed)
		}
		return missed, nil
	}
	for rate := s.From; ; {
		missed, err := try(rate)
		if err != nil {
			return out, fmt.Errorf("at %.0f a second: %w", rate, err)
		}
		c.Preload = 0
		if missed == "" {
			out.Knee = rate
		} else {
			out.Missed, out.Why = rate, missed
		}
		switch {
		case out.Missed == 0 && rate >= s.To:
			return out, nil
		case out.Missed == 0:
			rate = min(rate*growth, s.To)
		case out.Knee == 0 && rate < s.From/100:
			return out, nil
		case out.Knee == 0:
			rate /= 2
		case (out.Missed-out.Knee)/out.Knee <= s.Precision:
			_, err := try(comfortable * out.Knee)
			return out, err
		default:
			rate = (out.Knee + out.Missed) / 2
		}
	}
}
