// Command peers measures tier 1 of likectl beside what people use instead: plain
// Postgres in several ways, a naive handler before it, PocketBase and Redis, all on
// this machine, with the same durability, in interleaved rounds.
//
//	make bench-peers           # everything: some 20 minutes
//	make bench-peers SHORT=1   # to see that it works: less than 4 minutes
//
// Every round starts from empty tables. After it the counts are compared with the
// edges, and the edges with what was acknowledged: one difference, and nothing is
// published. The servers' durability is read back from them and is part of the
// result.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"likectl/benchmarks/result"
)

// options are what the program is told.
type options struct {
	full bool
	only *regexp.Regexp
	// out is the folder of the results.
	out string
}

func main() {
	if len(os.Args) == 4 && os.Args[1] == "front" {
		exit(front(os.Args[2], os.Args[3]))
	}
	var o options
	only := flag.String("only", "", "measure the cases alone whose names match this `expression`; targets without all of theirs are left out")
	flag.BoolVar(&o.full, "full", false, "measure for some 20 minutes; without it each case runs for a second, to see that it works")
	flag.StringVar(&o.out, "out", "benchmarks/results", "`folder` of the results")
	flag.Parse()
	var err error
	if o.only, err = regexp.Compile(*only); err != nil || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "peers: want flags alone, and an expression after -only:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) //nolint:forbidigo // this is main
	err = run(ctx, o)
	stop()
	exit(err)
}

// exit ends the program.
func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run measures everything and stores the result.
func run(ctx context.Context, o options) (err error) {
	p := shortPlan()
	if o.full {
		p = fullPlan()
	}
	p.only = o.only
	r := Report{Started: time.Now().UTC(), Machine: result.ThisMachine(), Full: o.full, Seconds: p.length.Seconds()}
	if err := os.MkdirAll(o.out, 0o755); err != nil { //nolint:gosec // results are for everybody
		return err // better now than at the end
	}
	l, err := openLab(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	r.Settings, r.Fdatasync = l.settings, l.fdatasync
	if r.Cases, err = p.measure(ctx, l, os.Stderr); err != nil {
		return fmt.Errorf("nothing is published: %w", err)
	}
	r.Rounds = p.rounds
	r.Took = time.Since(r.Started).Seconds()
	r.Targets = judge(r.Cases)
	return errors.Join(r.store(filepath.Join(o.out, r.name())), r.markdown(os.Stdout))
}
