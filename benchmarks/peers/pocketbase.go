package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// hotLikes is how many likes PocketBase's popular item has when its count is read.
// likectl's has as many or more (see [grow]); its count costs the same with any.
const hotLikes = 100_000

// SQLite's settings of PocketBase: its own, and the one that is as durable as the
// other systems of the comparison.
const (
	asShipped = "NORMAL"
	durable   = "FULL"
)

// startBase starts PocketBase on an empty folder, which end removes.
func (l *lab) startBase(ctx context.Context, synchronous string, hot int) (p *process, end func() error, err error) {
	dir, err := os.MkdirTemp(l.dir, "pocketbase")
	if err != nil {
		return nil, nil, err
	}
	p, err = startProcess(ctx, l.dir, []string{"SYNCHRONOUS=" + synchronous, "HOT=" + strconv.Itoa(hot)}, l.base, func(addr string) []string {
		return []string{"serve", "--http", addr, "--dir", filepath.Join(dir, "data")}
	})
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return p, func() error { return errors.Join(p.stop(), os.RemoveAll(dir)) }, nil
}

// baseSettings reads back what PocketBase says of itself.
func (l *lab) baseSettings(ctx context.Context) (all []Setting, err error) {
	for _, s := range []struct{ setting, number string }{{durable, "2"}, {asShipped, "1"}} { // pragma synchronous
		setting, number := s.setting, s.number
		p, end, err := l.startBase(ctx, setting, 0)
		if err != nil {
			return nil, err
		}
		said := p.tail()
		if err := end(); err != nil {
			return nil, err
		}
		if want := "synchronous=" + number + " journal_mode=wal"; !strings.Contains(said, want) {
			return nil, fmt.Errorf("PocketBase says %q, want %s", said, want)
		}
		all = append(all, Setting{"PocketBase " + setting, "synchronous, journal_mode", number + ", wal"})
	}
	return all, nil
}

// baseLikes measures likes: a record each.
func (l *lab) baseLikes(ctx context.Context, synchronous string, t Traffic, connections int, d time.Duration) (s Sample, err error) {
	p, end, err := l.startBase(ctx, synchronous, 0)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, end()) }()
	s, unsure, err := drive(ctx, p.addr, connections, 0, d, map[string]int{server: p.pid()}, func(connection int, to *tally) *script {
		pick := newPicker(t, connection)
		var body []byte
		return &script{to: to, good: status200, next: func(b []byte) ([]byte, int64) {
			item, user := pick.like()
			body = strconv.AppendInt(append(body[:0], `{"item":"`...), item, 10)
			body = append(strconv.AppendInt(append(body, `","user":"`...), user, 10), `"}`...)
			return post(b, p.addr, "/api/collections/likes/records", "", body), 1
		}}
	})
	if err != nil {
		return s, err
	}
	n, err := baseTotal(ctx, p.addr)
	if err != nil {
		return s, err
	}
	return s, account{edges: n, counted: n}.settle(s.Done, unsure)
}

// baseTotal asks for the number of all likes.
func baseTotal(ctx context.Context, addr string) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/api/collections/likes/records?perPage=1&fields=id", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close() //nolint:errcheck // it is only read
	var page struct{ TotalItems *int64 }
	text, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(text, &page)
	}
	if err != nil || page.TotalItems == nil {
		return 0, errors.Join(err, fmt.Errorf("PocketBase says no totalItems: %.200s", text))
	}
	return *page.TotalItems, nil
}

// baseCount measures reads of a popular item's count: a page of one record with the
// total, which is how PocketBase counts.
func (l *lab) baseCount(ctx context.Context, connections int, d time.Duration) (s Sample, err error) {
	p, end, err := l.startBase(ctx, asShipped, hotLikes)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, end()) }()
	path := "/api/collections/likes/records?perPage=1&fields=id&filter=(item%3D%271%27)"
	total := []byte(`"totalItems":` + strconv.Itoa(hotLikes))
	s, _, err = drive(ctx, p.addr, connections, 0, d, map[string]int{server: p.pid()}, reading(p.addr, path, total))
	return s, err
}

// reading reads one path over and over; the answer must contain something.
func reading(addr, path string, want []byte) func(int, *tally) *script {
	request := []byte("GET " + path + " HTTP/1.1\r\nHost: " + addr + "\r\n\r\n")
	return func(_ int, to *tally) *script {
		return &script{
			to: to, next: func(b []byte) ([]byte, int64) { return append(b, request...), 1 },
			good: func(status int, body []byte) bool { return status == http.StatusOK && bytes.Contains(body, want) },
		}
	}
}

// everyEntry says whether a batch and all of its entries went well.
func everyEntry(status int, body []byte) bool {
	return status == http.StatusOK && !bytes.Contains(body, []byte(`"error`))
}
