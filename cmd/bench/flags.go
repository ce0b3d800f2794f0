package bench

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"likectl/benchmarks/bench"
	"likectl/benchmarks/workload"
	"likectl/cmd/app"
	"likectl/cmd/cli"
	"likectl/pkg/config"
)

// flags are what all measurements are told, as it is typed.
type flags struct {
	url, admin, workload, itemType string
	connections                    int
	duration, warmup, timeout      time.Duration
	users, items, preload          int64
	seed                           uint64
	poisson, unchecked             bool
	watch                          []string
	stores                         *app.StoreFlags
}

func (f *flags) add(cmd *cobra.Command) {
	defaults := config.Default()
	set := cmd.Flags()
	set.StringVar(&f.url, "url", "http://"+defaults.Listen, "`URL` of the API")
	set.StringVar(&f.admin, "admin", "http://"+defaults.AdminListen, "`URL` of the server's admin listener, for the preload, the check and its metrics")
	set.StringVar(&f.workload, "workload", "default", "what is sent: one of the workloads below")
	set.IntVar(&f.connections, "connections", 64, "connections, 1 to 100000")
	set.DurationVar(&f.duration, "duration", 10*time.Second, "how long to measure")
	set.DurationVar(&f.warmup, "warmup", 2*time.Second, "how long to send before that")
	set.DurationVar(&f.timeout, "timeout", 10*time.Second, "time for one request")
	set.Int64Var(&f.users, "users", 100_000, "how many users like")
	set.Int64Var(&f.items, "items", 100_000, "how many items there are")
	set.StringVar(&f.itemType, "item-type", "post", "the type of all items")
	set.Int64Var(&f.preload, "preload", 0, "likes that there must be before; they are made where they are missing")
	set.Uint64Var(&f.seed, "seed", 1, "of all that is drawn at random")
	set.BoolVar(&f.poisson, "poisson", true, "random gaps between requests, as those of many users; false: even ones")
	set.BoolVar(&f.unchecked, "no-check", false, "do not compare the counts with their edges at the end")
	set.StringArrayVar(&f.watch, "watch", nil, "`NAME=PID` of a process whose processor time is noted, with its children; may be given several times")
	f.stores = app.AddStoreFlags(cmd)
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("workload", cobra.FixedCompletions(workload.Names(), cobra.ShellCompDirectiveNoFileComp)))
}

// config returns what was typed, without what the server must be asked for.
func (f *flags) config() (c bench.Config, err error) {
	if c.URL, err = url.Parse(f.url); err != nil {
		return c, cli.Usagef("--url: %w", err)
	}
	if c.Mix, err = workload.Named(f.workload); err != nil {
		return c, cli.Usagef("--workload: %w", err)
	}
	c.Population = workload.Population{Users: f.users, Items: f.items}
	c.Preload, c.ItemType, c.Connections, c.Seed = f.preload, f.itemType, f.connections, f.seed
	c.Duration, c.Warmup, c.Timeout = f.duration, f.warmup, f.timeout
	c.Poisson, c.Unchecked = f.poisson, f.unchecked
	if c.Watch, err = watched(f.watch); err != nil {
		return c, err
	}
	if err := c.Validate(); err != nil {
		return c, cli.Usagef("%w", err)
	}
	return c, nil
}

// watched reads NAME=PID.
func watched(texts []string) (map[string]int, error) {
	pids := make(map[string]int, len(texts))
	for _, text := range texts {
		name, number, ok := strings.Cut(text, "=")
		pid, err := strconv.Atoi(number)
		if !ok || name == "" || err != nil || pid < 1 {
			return nil, cli.Usagef("--watch %s: want NAME=PID, such as likectl=4711", text)
		}
		if err := bench.CheckProcess(pid); err != nil {
			return nil, cli.Usagef("--watch %s: %w", text, err)
		}
		pids[name] = pid
	}
	return pids, nil
}
