package store

import "time"

// Migration is one step of a store's schema.
type Migration struct {
	Version int64
	// Name is the step's file name.
	Name string
	// AppliedAt is zero while the step is pending.
	AppliedAt time.Time
}
