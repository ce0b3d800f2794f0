// Package doctor looks at everything that a server with a configuration would
// stand on, and says what each thing means for the likes and what to do about
// it. It changes nothing, and looks at what can be reached although something
// else cannot.
package doctor

import (
	"context"
	"fmt"

	"likectl/pkg/config"
)

// State is how bad a finding is.
type State string

// The states.
const (
	// OK: as it should be.
	OK State = "OK"
	// Warn: the service runs, and something can be lost, or stop it later.
	Warn State = "WARN"
	// Fail: the service does not start, or loses likes that it has answered.
	Fail State = "FAIL"
)

// Finding is the result of one check.
type Finding struct {
	Check string `json:"check"`
	State State  `json:"state"`
	// Found is what is there.
	Found string `json:"found"`
	// Means says what that does to the data or the service, Do what to do about
	// it; Do is empty if nothing.
	Means string `json:"means"`
	Do    string `json:"do,omitempty"`
}

// Report collects findings.
type Report struct {
	Findings []Finding
}

func (r *Report) ok(check, found, means string) {
	r.Findings = append(r.Findings, Finding{check, OK, found, means, ""})
}

func (r *Report) bad(s State, check, found, means, do string) {
	r.Findings = append(r.Findings, Finding{check, s, found, means, do})
}

// Count returns the number of findings in a state.
func (r *Report) Count(s State) (n int) {
	for _, f := range r.Findings {
		if f.State == s {
			n++
		}
	}
	return n
}

// Run makes all checks for a number of instances with this configuration, 1 or
// more.
func Run(ctx context.Context, cfg config.Config, instances int) *Report {
	r := &Report{}
	info := r.folder(cfg)
	r.openFiles(cfg)
	switch {
	case cfg.Postgres.DSN != "":
		r.postgres(ctx, cfg, instances)
	case info != nil:
		r.sqlite(ctx, info)
	}
	return r
}

// size is a number of bytes as people read it.
func size[T int64 | uint64](n T) string {
	const unit = 1024
	f, units := float64(n), "KMGTP"
	if f < unit {
		return fmt.Sprintf("%d bytes", n)
	}
	i := -1
	for f >= unit && i < len(units)-1 {
		f /= unit
		i++
	}
	return fmt.Sprintf("%.1f %ciB", f, units[i])
}
