// Package result is what a benchmark run found, as it is kept in a file, printed and
// compared.
package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Format is the version of the file's format.
const Format = 1

// Run is one run. Rates are per second.
type Run struct {
	Format   int       `json:"format"`
	Started  time.Time `json:"started"`
	Target   Target    `json:"target"`
	Machine  Machine   `json:"machine"`
	Workload Workload  `json:"workload"`

	// Wanted is the rate of requests that was asked for, 0: as fast as possible.
	// Achieved is that of the answers as wanted.
	Wanted   float64 `json:"wanted"`
	Achieved float64 `json:"achieved"`
	// Seconds is how long the measurement took.
	Seconds float64 `json:"seconds"`
	// Invalid are the reasons for which the run says nothing about the server: none
	// if it is valid.
	Invalid []string `json:"invalid"`
	// Limited: one of them is that the generator itself, or the machine, was what was
	// slow; nothing is known about the server then.
	Limited bool `json:"generator_limited,omitempty"`

	Kinds  []Kind  `json:"kinds"`
	Series []Point `json:"series"`
	// Late is by how much the generator itself was late.
	Late      Latency   `json:"late"`
	Processes []Process `json:"processes"`
	Server    Server    `json:"server"`
	// Check is nil if counts were not compared with their edges.
	Check *Check `json:"check"`
}

// Target is what was measured.
type Target struct {
	URL     string `json:"url"`
	Version string `json:"version"`
}

// Workload is what was sent.
type Workload struct {
	Name        string  `json:"name"`
	Seed        uint64  `json:"seed"`
	Users       int64   `json:"users"`
	Items       int64   `json:"items"`
	Preloaded   int64   `json:"preloaded"`
	Connections int     `json:"connections"`
	Poisson     bool    `json:"poisson"`
	Warmup      float64 `json:"warmup_s"`
	Duration    float64 `json:"duration_s"`
}

// Kind are the requests of one kind.
type Kind struct {
	Name   string           `json:"name"`
	Sent   int64            `json:"sent"`
	OK     int64            `json:"ok"`
	Errors map[string]int64 `json:"errors,omitempty"`
	// Rate is that of the answers as wanted.
	Rate float64 `json:"rate"`
	// Latency counts from when a request was due, Service from its sending.
	Latency Latency `json:"latency"`
	Service Latency `json:"service"`
}

// Point is one second of the run.
type Point struct {
	At     float64 `json:"at_s"`
	OK     int64   `json:"ok"`
	Failed int64   `json:"failed"`
	P50    float64 `json:"p50_ms"`
	P99    float64 `json:"p99_ms"`
	// Log and Flushes are those of Server, in this second.
	Log     int64 `json:"log_bytes,omitempty"`
	Flushes int64 `json:"log_flushes,omitempty"`
	// CPU is the processors that each process used, by its name.
	CPU map[string]float64 `json:"cpu,omitempty"`
}

// Process is the processor time of one process and its descendants.
type Process struct {
	Name string  `json:"name"`
	CPU  float64 `json:"cpu_s"`
	// PerRequest is in microseconds per answer as wanted.
	PerRequest float64 `json:"cpu_us_per_request"`
}

// Server is what the server's own metrics say about the measurement.
type Server struct {
	// Commits are durable transactions of writes, Operations the likes in them.
	Commits    float64 `json:"commits"`
	Operations float64 `json:"operations"`
	// Log is what the database wrote to its log, in bytes, and Flushes how often it
	// flushed it; 0 if nobody looked, Flushes -1 if the server does not tell.
	Log     int64 `json:"log_bytes"`
	Flushes int64 `json:"log_flushes"`
}

// Check is the comparison of every count with its edges after the run.
type Check struct {
	Counters  int64 `json:"counters"`
	Different int64 `json:"different"`
}

// Valid says whether the run says anything.
func (r *Run) Valid() bool { return len(r.Invalid) == 0 }

// Kind returns the requests of a kind.
func (r *Run) Kind(name string) (Kind, bool) {
	for _, k := range r.Kinds {
		if k.Name == name {
			return k, true
		}
	}
	return Kind{}, false
}

// Failed returns how many requests had no answer as wanted.
func (k *Kind) Failed() int64 { return k.Sent - k.OK }

// Write stores runs in a file, a line of JSON each. The file appears at once and
// whole.
func Write(path string, runs ...Run) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ignoreMissing(os.Remove(f.Name()))) }()
	e := json.NewEncoder(f)
	for i := range runs {
		runs[i].Format = Format
		if err := e.Encode(&runs[i]); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	if err := errors.Join(f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Read returns the runs in a file.
func Read(path string) ([]Run, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	var runs []Run
	d := json.NewDecoder(f)
	for {
		var r Run
		err := d.Decode(&r)
		switch {
		case errors.Is(err, io.EOF) && len(runs) == 0:
			return nil, fmt.Errorf("%s: there is no run in it", path)
		case errors.Is(err, io.EOF):
			return runs, nil
		case err != nil:
			return nil, fmt.Errorf("%s: run %d: %w", path, len(runs)+1, err)
		case r.Format != Format:
			return nil, fmt.Errorf("%s: run %d has the format %d, this program reads %d", path, len(runs)+1, r.Format, Format)
		}
		runs = append(runs, r)
	}
}
