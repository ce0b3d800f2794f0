package load

import (
	"math/rand/v2"
	"time"
)

// schedule says when requests are due, from the run's start.
type schedule struct {
	rate   float64 // per second
	burst  Burst
	random *rand.Rand // nil: evenly spaced
	at     float64    // nanoseconds
}

// Burst multiplies the rate at times.
type Burst struct {
	// Factor is by how much, 1 or more; 0: no bursts.
	Factor float64
	// Every is from the start of one burst to the next, Length how long each
	// takes; the first one begins after Every.
	Every, Length time.Duration
}

// next returns the next instant. Arrivals of many independent users are a Poisson
// process: the gaps are exponential.
func (s *schedule) next() time.Duration {
	rate := s.rate
	if s.burst.Factor > 0 {
		at := time.Duration(s.at)
		if at >= s.burst.Every && at%s.burst.Every < s.burst.Length {
			rate *= s.burst.Factor
		}
	}
	gap := 1e9 / rate
	if s.random != nil {
		gap *= s.random.ExpFloat64()
	}
	s.at += gap
	return time.Duration(s.at)
}
