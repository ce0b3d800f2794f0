package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"likectl/pkg/bounded"
)

const (
	// maxDocument bounds a key document, in bytes. A key has about 500.
	maxDocument = 256 << 10
	// fetchTimeout bounds one answer of a URL.
	fetchTimeout = 5 * time.Second
)

// feed is a source with its last good keys.
type feed struct {
	source *Source
	policy *policy
	pause  time.Duration
	wake   chan struct{} // asks for a reading; of capacity 1
	// failed and complaint are the last reading's: whether, and what was logged.
	failed    bool
	complaint string
	// keys are in force; loaded says that they have been read at least once.
	keys   []*key
	loaded bool

	mu      sync.Mutex
	begun   time.Time     // of the last reading
	reading chan struct{} // closed at its end; nil if none is under way
}

// load reads a file for the first time.
func (f *feed) load() error {
	doc, err := bounded.ReadFile(f.source.File, maxDocument)
	keys, _, err := f.parse(doc, err)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		return fmt.Errorf("key file %s: it holds no %s key for signatures", f.source.File, f.source.Alg)
	}
	f.keys, f.loaded = keys, true
	return nil
}

// read reads the source once.
func (f *feed) read(ctx context.Context) (keys []*key, bad []error, err error) {
	var doc []byte
	if f.source.URL != "" {
		doc, err = fetch(ctx, f.source.URL)
	} else {
		// All of it each time, which costs less than to trust the resolution of
		// its modification time.
		doc, err = bounded.ReadFile(f.source.File, maxDocument)
	}
	return f.parse(doc, err)
}

// parse parses what reading has given. Errors name the document. In a file every
// key has to be good: it is ours to correct. A provider's bad key must not keep
// its other changes from us.
func (f *feed) parse(doc []byte, err error) (keys []*key, bad []error, _ error) {
	if err == nil {
		keys, bad, err = parseKeys(doc, f.source, f.policy)
	}
	switch {
	case f.source.URL != "" && err != nil:
		return nil, nil, fmt.Errorf("keys from %s: %w", f.source.URL, err)
	case err == nil && f.source.File != "":
		err = errors.Join(bad...)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("key file %s: %w", f.source.File, err)
	}
	return keys, bad, nil
}

// fetch gets a JWKS. Redirects are not followed: they could lead away from https,
// or into the network that this process stands in. Connections are not kept, the
// next fetch is minutes away.
func fetch(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/jwk-set+json, application/json")
	client := http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // it has been read
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("answered %s, want 200 and no redirect", resp.Status)
	}
	return bounded.ReadAll(resp.Body, maxDocument)
}

// ask asks for a reading and returns what is closed at its end: of the one under
// way, if there is one. It returns nil if the last one began less than a pause
// ago, so that tokens with invented kids cause no more than one per pause.
func (f *feed) ask(now time.Time) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reading != nil {
		return f.reading
	}
	if now.Sub(f.begun) < f.pause {
		return nil
	}
	f.begun, f.reading = now, make(chan struct{})
	f.wake <- struct{}{} // does not block: begin has taken what was in it
	return f.reading
}

// begin marks a reading as under way, which also serves who has asked for one.
func (f *feed) begin() chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.wake:
	default:
	}
	f.begun = time.Now()
	if f.reading == nil {
		f.reading = make(chan struct{})
	}
	return f.reading
}

// end lets go who waits for the reading.
func (f *feed) end(reading chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reading = nil
	close(reading)
}
