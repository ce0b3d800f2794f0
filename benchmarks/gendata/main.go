// Command gendata writes likes and unlikes for imports to be tried with: items
// and users by a Zipf distribution, some lines repeated, some likes taken back.
// The same flags give the same file, byte by byte.
//
//	go run ./benchmarks/gendata -n 1000000 -seed 7 > events.csv
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"time"
)

// options are the shape of the file.
type options struct {
	lines, users, items int
	seed                uint64
	exponent            float64
	jsonl               bool
}

func main() {
	var o options
	flag.IntVar(&o.lines, "n", 1_000_000, "lines")
	flag.IntVar(&o.users, "users", 200_000, "users")
	flag.IntVar(&o.items, "items", 50_000, "items")
	flag.Uint64Var(&o.seed, "seed", 1, "seed")
	flag.Float64Var(&o.exponent, "s", 1.1, "exponent of the Zipf distribution, above 1")
	flag.BoolVar(&o.jsonl, "jsonl", false, "write JSONL instead of CSV")
	flag.Parse()
	if err := run(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "gendata:", err)
		os.Exit(1)
	}
}

// event is one line.
type event struct {
	user, item    uint64
	kind          string
	action        string
	likedAt       string
	unixSeconds   bool // likedAt is a number
	likesUnmarked bool // action is left out: it is the default
}

// The shares of special lines, in percent. Repeats and unlikes are those of the
// default workload; the others make every rule of an import matter.
const (
	repeats  = 5
	unlikes  = 10
	flips    = 3 // the opposite of an earlier line, at the same time
	undated  = 10
	ancients = 5  // before 2020: a line's number is its time
	ties     = 15 // the time of the line before
	seconds  = 20 // a number instead of RFC 3339
)

func run(w io.Writer, o options) error {
	if o.lines < 1 || o.users < 1 || o.items < 1 || o.exponent <= 1 {
		return errors.New("want at least one line, user and item, and an exponent above 1")
	}
	out := bufio.NewWriterSize(w, 1<<20)
	if !o.jsonl {
		if _, err := out.WriteString("user_id,item_type,item_id,action,liked_at\n"); err != nil {
			return err
		}
	}
	g := newGenerator(o)
	for range o.lines {
		e := g.next()
		line := e.csv()
		if o.jsonl {
			line = e.json()
		}
		if _, err := out.WriteString(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

type generator struct {
	r            *rand.Rand
	users, items *rand.Zipf
	clock        time.Time
	sent         []event // a window to repeat and take back from
}

const window = 1 << 14

func newGenerator(o options) *generator {
	r := rand.New(rand.NewPCG(o.seed, 0))
	return &generator{
		r:     r,
		users: rand.NewZipf(r, o.exponent, 20, uint64(o.users-1)),
		items: rand.NewZipf(r, o.exponent, 1, uint64(o.items-1)),
		clock: time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}

func (g *generator) percent(p int) bool { return g.r.IntN(100) < p }

func (g *generator) next() event {
	if len(g.sent) > 0 && g.percent(repeats) {
		return g.sent[g.r.IntN(len(g.sent))]
	}
	item := g.items.Uint64()
	e := event{user: 1 + g.users.Uint64(), item: 1 + item, kind: []string{"post", "reel", "comment"}[item%3], action: "like"}
	if len(g.sent) > 0 && g.percent(unlikes) {
		old := g.sent[g.r.IntN(len(g.sent))]
		e.user, e.item, e.kind, e.action = old.user, old.item, old.kind, "unlike"
	}
	g.date(&e)
	if len(g.sent) > 0 && g.percent(flips) {
		old := g.sent[g.r.IntN(len(g.sent))]
		e, e.action = old, "unlike"
		if old.action == "unlike" {
			e.action = "like"
		}
	}
	e.likesUnmarked = e.action == "like" && g.percent(30)
	if len(g.sent) < window {
		g.sent = append(g.sent, e)
	} else {
		g.sent[g.r.IntN(window)] = e
	}
	return e
}

// date gives the event a time; the clock goes forward unless it is to tie.
func (g *generator) date(e *event) {
	if !g.percent(ties) {
		g.clock = g.clock.Add(time.Duration(1+g.r.IntN(100_000_000)) * time.Microsecond)
	}
	switch {
	case g.percent(undated):
	case g.percent(ancients):
		e.likedAt = g.clock.AddDate(-10, 0, 0).Format(time.RFC3339)
	case g.percent(seconds):
		e.likedAt, e.unixSeconds = strconv.FormatInt(g.clock.Unix(), 10), true
	default:
		e.likedAt = g.clock.Format("2006-01-02T15:04:05.000000Z")
	}
}

func (e event) csv() string {
	action := e.action
	if e.likesUnmarked {
		action = ""
	}
	return fmt.Sprintf("%d,%s,%d,%s,%s\n", e.user, e.kind, e.item, action, e.likedAt)
}

// json writes ids as strings and numbers by turns.
func (e event) json() string {
	id := func(n uint64) string {
		if n%2 == 0 {
			return strconv.FormatUint(n, 10)
		}
		return strconv.Quote(strconv.FormatUint(n, 10))
	}
	line := fmt.Sprintf(`{"user_id":%s,"item_type":%q,"item_id":%s`, id(e.user), e.kind, id(e.item))
	if !e.likesUnmarked {
		line += fmt.Sprintf(`,"action":%q`, e.action)
	}
	switch {
	case e.unixSeconds:
		line += `,"liked_at":` + e.likedAt
	case e.likedAt != "":
		line += fmt.Sprintf(`,"liked_at":%q`, e.likedAt)
	}
	return line + "}\n"
}
