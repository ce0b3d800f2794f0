package abuse

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// watched is a file of which the last good version is in force.
type watched struct {
	name string // in logs
	path string
	max  int64
	// use puts a version in force or says what is wrong with it.
	use func(doc []byte) error

	sum       [sha256.Size]byte // of the version in force
	complaint string            // the last one logged
}

// watch returns the files of the configuration.
func (g *Guard) watch() []*watched {
	var all []*watched
	if g.cfg.List != "" {
		all = append(all, &watched{name: "list", path: g.cfg.List, max: maxList, use: func(doc []byte) error {
			l, err := parseList(doc)
			if err == nil {
				g.list.Store(l)
			}
			return err
		}})
	}
	if g.scorer != nil && g.cfg.Scorer.TokenFile != "" {
		all = append(all, &watched{name: "token", path: g.cfg.Scorer.TokenFile, max: maxToken, use: g.scorer.setToken})
	}
	return all
}

// read reads the file and puts it in force unless it is already. It reads all of
// it each time, since a modification time can stay the same.
func (w *watched) read() error {
	doc, err := readFile(w.path, w.max)
	if err != nil {
		return fmt.Errorf("%s file %s: %w", w.name, w.path, err)
	}
	sum := sha256.Sum256(doc)
	if sum == w.sum {
		return nil
	}
	if err := w.use(doc); err != nil {
		return fmt.Errorf("%s file %s: %w", w.name, w.path, err)
	}
	w.sum = sum
	return nil
}

// follow reads the files again and again until Close. What a broken version says
// is not in force: the one before it stays.
func (g *Guard) follow(ctx context.Context) {
	if len(g.files) == 0 {
		return
	}
	ctx, g.stop = context.WithCancel(context.WithoutCancel(ctx))
	g.ended.Go(func() {
		tick := time.NewTicker(g.cfg.Refresh)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			for _, f := range g.files {
				g.refresh(f)
			}
		}
	})
}

// refresh reads a file once and logs what changed, a failure once and not every
// few seconds.
func (g *Guard) refresh(f *watched) {
	was := f.sum
	err := f.read()
	if g.cfg.Hooks.Read != nil {
		g.cfg.Hooks.Read(f.name, err)
	}
	complaint := ""
	if err != nil {
		complaint = err.Error()
	}
	switch {
	case err != nil && complaint != f.complaint:
		g.cfg.Log.Error("a file against abuse is not read; its last good version stays in force", "file", f.name, "error", err)
	case err == nil && f.sum != was && f.name == "list":
		g.cfg.Log.Info("the reputation list changed", "entries", g.list.Load().size())
	case err == nil && (f.sum != was || f.complaint != ""):
		g.cfg.Log.Info("a file against abuse is read", "file", f.name)
	}
	f.complaint = complaint
}

// Close ends the reading of files and the connections to the scorer.
func (g *Guard) Close(context.Context) error {
	g.stop()
	g.ended.Wait()
	if g.scorer != nil {
		g.scorer.client.CloseIdleConnections()
	}
	return nil
}

func readFile(name string, most int64) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file") // a pipe would never end
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	return readAll(file, most)
}

// readAll reads at most so many bytes; more are an error.
func readAll(r io.Reader, most int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(b)) > most {
		return nil, fmt.Errorf("it has more than %d bytes", most)
	}
	return b, err
}

// maxToken bounds a file with a token, in bytes.
const maxToken = 8 << 10

// parseToken reads what follows "Bearer ": one word.
func parseToken(doc []byte) (string, error) {
	text := strings.TrimSpace(string(doc))
	if text == "" {
		return "", errors.New("it holds no token")
	}
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return "", errors.New("want one token of visible ASCII characters")
		}
	}
	return text, nil
}
