// Package progress tells people how far a long command is: a bar on a terminal,
// a line every few seconds elsewhere, nothing if it is over in a moment.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

const (
	// patience is how long a command runs before progress is of interest.
	patience = 2 * time.Second
	// barEvery is fast enough to look alive, lineEvery slow enough for a log.
	barEvery  = 200 * time.Millisecond
	lineEvery = 5 * time.Second
)

// Sample is how far the work is.
type Sample struct {
	Done int64
	// Total is what Done will be at the end, as well as it is known by now; 0 if
	// it is not.
	Total int64
	// Stalled is why the work stands still and is tried again; "" while it goes on.
	Stalled string
}

// Reporter reports until it is stopped.
type Reporter struct {
	out      io.Writer
	terminal bool
	unit     string
	sample   func() Sample
	began    time.Time
	stop     chan struct{}
	done     chan struct{}
}

// Start begins to report what sample returns to out; unit names what is counted,
// such as "lines". sample is called from another goroutine.
func Start(out io.Writer, unit string, sample func() Sample) *Reporter {
	return start(out, unit, sample, IsTerminal(out))
}

func start(out io.Writer, unit string, sample func() Sample, terminal bool) *Reporter {
	r := &Reporter{
		out: out, terminal: terminal, unit: unit, sample: sample, began: time.Now(),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	go r.run()
	return r
}

// Stop ends the reports and takes a bar off the terminal. Nothing is written
// after it returned.
func (r *Reporter) Stop() {
	close(r.stop)
	<-r.done
}

// IsTerminal says whether people see what is written to out at once.
func IsTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (r *Reporter) run() {
	defer close(r.done)
	select {
	case <-r.stop:
		return
	case <-time.After(patience):
	}
	before, after, every := "", "\n", lineEvery
	if r.terminal {
		before, after, every = clearLine, "", barEvery
		defer func() { _, _ = io.WriteString(r.out, clearLine) }()
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		// That nobody can be told is no reason to stop the work.
		_, _ = io.WriteString(r.out, before+r.text(r.sample())+after)
		select {
		case <-r.stop:
			return
		case <-tick.C:
		}
	}
}

// clearLine goes to the line's start and erases to its end (ECMA-48, CR and EL).
const clearLine = "\r\x1b[K"

// text says how far the work is. The time left supposes the rate so far.
func (r *Reporter) text(s Sample) string {
	if s.Stalled != "" {
		return fmt.Sprintf("%d %s; nothing gets through, trying again: %s", s.Done, r.unit, s.Stalled)
	}
	rate := float64(s.Done) / time.Since(r.began).Seconds()
	text := fmt.Sprintf("%d %s, %.0f/s", s.Done, r.unit, rate)
	if s.Total <= 0 {
		return text
	}
	share := min(1, float64(s.Done)/float64(s.Total))
	text += fmt.Sprintf(", %.0f%%", 100*share)
	if rate > 0 {
		left := time.Duration(float64(max(0, s.Total-s.Done)) / rate * float64(time.Second))
		text += fmt.Sprintf(", about %v left", left.Round(time.Second))
	}
	if r.terminal {
		const width = 24
		full := int(share * width)
		text = "[" + strings.Repeat("=", full) + strings.Repeat(" ", width-full) + "] " + text
	}
	return text
}
