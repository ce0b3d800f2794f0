// Command recount counts the likes in an import file without likectl: it shares
// no code with it, only the written rule, so that both can be held against each
// other. It reads CSV or JSONL and writes item_type,item_id,likes of every item
// that the file names, sorted; items without likes have 0.
//
//	go run ./benchmarks/recount events.csv > counts.csv
//
// The rule: of the lines on one user and item the one with the greatest
// (time, line number) wins. The time is liked_at in whole microseconds if it is
// 2020 or later, else the line number in microseconds from 2020 on. Only the
// counter likes is counted.
package main

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: recount FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "recount:", err)
		os.Exit(1)
	}
}

func run(path string, w io.Writer) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	likes := make(fold)
	in := bufio.NewReader(f)
	if first, err := in.Peek(1); err == nil && first[0] == '{' {
		err = readJSON(in, likes)
		if err != nil {
			return err
		}
	} else if err := readCSV(in, likes); err != nil {
		return err
	}
	return likes.write(w)
}

type item struct {
	kind string
	id   int64
}

type edge struct {
	item
	user int64
}

// state is what the winning line says.
type state struct {
	micros int64
	liked  bool
}

type fold map[edge]state

// add takes a line. Lines come in order, so of equal times the newcomer wins.
func (f fold) add(line int64, fields map[string]string) error {
	if c := fields["counter"]; c != "" && c != "likes" {
		return nil
	}
	user, err := strconv.ParseInt(fields["user_id"], 10, 64)
	if err != nil {
		return err
	}
	id, err := strconv.ParseInt(fields["item_id"], 10, 64)
	if err != nil {
		return err
	}
	micros, err := when(line, fields["liked_at"])
	if err != nil {
		return err
	}
	e := edge{item{fields["item_type"], id}, user}
	if old, ok := f[e]; !ok || micros >= old.micros {
		f[e] = state{micros, fields["action"] != "unlike"}
	}
	return nil
}

// when returns the line's time in microseconds since 2020.
func when(line int64, likedAt string) (int64, error) {
	if likedAt == "" {
		return line, nil
	}
	at, err := time.Parse(time.RFC3339, likedAt)
	if seconds, nerr := strconv.ParseInt(likedAt, 10, 64); nerr == nil {
		at, err = time.Unix(seconds, 0), nil
	}
	if err != nil {
		return 0, err
	}
	start := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	if at.Before(start) {
		return line, nil
	}
	return at.UnixMicro() - start.UnixMicro(), nil
}

// write counts the liked edges of each item.
func (f fold) write(w io.Writer) error {
	counts := make(map[item]int64)
	for e, s := range f {
		if s.liked {
			counts[e.item]++
		} else {
			counts[e.item] += 0
		}
	}
	items := make([]item, 0, len(counts))
	for i := range counts {
		items = append(items, i)
	}
	slices.SortFunc(items, func(a, b item) int { return cmp.Or(strings.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id)) })
	out := bufio.NewWriter(w)
	_, err := fmt.Fprintln(out, "item_type,item_id,likes")
	for _, i := range items {
		if err == nil {
			_, err = fmt.Fprintf(out, "%s,%d,%d\n", i.kind, i.id, counts[i])
		}
	}
	return cmp.Or(err, out.Flush())
}

func readCSV(r io.Reader, f fold) error {
	in := csv.NewReader(r)
	header, err := in.Read()
	if err != nil {
		return fmt.Errorf("header: %w", err)
	}
	for {
		values, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		fields := make(map[string]string, len(values))
		for n, v := range values {
			fields[header[n]] = v
		}
		line, _ := in.FieldPos(0)
		if err := f.add(int64(line), fields); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}

func readJSON(r io.Reader, f fold) error {
	in := bufio.NewScanner(r)
	for line := int64(1); in.Scan(); line++ {
		if strings.TrimSpace(in.Text()) == "" {
			continue
		}
		d := json.NewDecoder(strings.NewReader(in.Text()))
		d.UseNumber()
		var values map[string]any
		if err := d.Decode(&values); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		fields := make(map[string]string, len(values))
		for name, v := range values {
			if v != nil {
				fields[name] = fmt.Sprint(v)
			}
		}
		if err := f.add(line, fields); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
	return in.Err()
}
