// Package tiers is the ladder: which architectures there are, what each one
// promises, and how one is opened over its stores.
package tiers

import (
	"likectl/pkg/likes"
)

// Engine names the database under tier 1.
type Engine string

// The engines of tier 1.
const (
	// Postgres is tier 1 as a service of any number of instances.
	Postgres Engine = "postgres"
	// SQLite is tier 1 embedded in one process.
	SQLite Engine = "sqlite"
)

// Contract returns what tier 1 on an engine promises. Higher tiers join here
// when they are built.
func Contract(engine Engine) likes.Contract {
	c := likes.Contract{
		Tier:             1,
		Name:             "one Postgres",
		Ack:              likes.AckCommitted,
		ReadYourWrites:   true,
		ExactChanged:     true,
		CountEqualsEdges: true,
		Losses: []likes.Loss{{
			Backend: "Postgres",
			Away:    "no reads and no writes: 503, nothing is accepted",
			Lost:    "everything since the last backup; with a synchronous replica nothing",
		}},
	}
	if engine == SQLite {
		c.Name = "embedded SQLite"
		c.Losses = []likes.Loss{{
			Backend: "the data folder",
			Away:    "no reads and no writes: 503, nothing is accepted",
			Lost:    "everything since the last copy of the folder",
		}}
	}
	return c
}
