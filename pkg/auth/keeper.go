package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"likectl/pkg/likes"
)

// Keys are the public keys that an authority accepts beside its secret, and how
// it keeps up with them.
type Keys struct {
	Sources []Source
	// FileEvery and URLEvery are how often files and URLs are read again. A key
	// that is gone from its source is accepted for no longer than that, its
	// remembered tokens included, provided that the source can be read.
	FileEvery, URLEvery time.Duration
	// Log is told of changes and failures.
	Log *slog.Logger
	// Read, if not nil, is told of every reading of a source.
	Read func(source string, err error)
}

const (
	// urlPause is the least time from one reading of a URL to the next, whatever
	// tokens arrive, and the time after which a failed one is repeated.
	urlPause = 10 * time.Second
	// awaitMax is how long a token waits for its issuer's keys to be read.
	awaitMax = 2 * time.Second
)

// keeper keeps an authority's ring in step with the sources.
type keeper struct {
	a     *Authority
	cfg   Keys
	feeds []*feed
	stop  context.CancelFunc
	ended sync.WaitGroup
	done  <-chan struct{} // closed when the feeds are no longer followed

	mu sync.Mutex // one change of the ring at a time, and the feeds' keys
}

// Open returns an authority for the secret and for public keys. Files must hold
// good keys: the error is ErrInvalid and names the source. URLs are read too, but
// one that does not answer only means that its tokens are not accepted yet, so
// that a provider that is away keeps no instance from starting.
func Open(ctx context.Context, cfg Config, keys Keys) (*Authority, error) {
	return open(ctx, cfg, keys, urlPause)
}

func open(ctx context.Context, cfg Config, keys Keys, pause time.Duration) (*Authority, error) {
	a, err := New(cfg)
	if err != nil {
		return nil, err
	}
	if keys.FileEvery <= 0 || keys.URLEvery <= 0 {
		return nil, likes.Errorf(likes.ErrInvalid, "keys are read every %v and %v, want more than 0", keys.FileEvery, keys.URLEvery)
	}
	k := &keeper{a: a, cfg: keys}
	if err := k.load(pause); err != nil {
		return nil, err
	}
	a.keys = k
	var first sync.WaitGroup
	for _, f := range k.feeds {
		if f.source.URL != "" {
			first.Go(func() { k.refresh(ctx, f) })
		}
	}
	first.Wait()
	ctx, k.stop = context.WithCancel(context.WithoutCancel(ctx))
	k.done = ctx.Done()
	for _, f := range k.feeds {
		k.ended.Go(func() { k.follow(ctx, f) })
	}
	return a, nil
}

// CheckFiles reads the key files of the sources and nothing else. It returns the
// error that Open would, before anything has been opened.
func CheckFiles(issuer string, sources []Source) error {
	cfg := Default(make([]byte, SecretSize))
	cfg.Issuer = issuer
	a, err := New(cfg)
	if err != nil {
		return err
	}
	return (&keeper{a: a, cfg: Keys{Sources: sources}}).load(urlPause)
}

// load makes the feeds and reads those that are files.
func (k *keeper) load(pause time.Duration) error {
	var bad []error
	for i := range k.cfg.Sources {
		s := &k.cfg.Sources[i]
		f := &feed{source: s, policy: k.a.policy(s), wake: make(chan struct{}, 1), pause: pause}
		k.feeds = append(k.feeds, f)
		err := s.Check()
		if err == nil && s.File != "" {
			err = f.load()
		}
		if err != nil {
			bad = append(bad, likes.Errorf(likes.ErrInvalid, "%s: %w", s.Name, err))
		}
	}
	k.publish(func(f *feed, key *key) {
		bad = append(bad, likes.Errorf(likes.ErrInvalid, "%s: another key has its issuer %q and kid %q", f.source.Name, key.policy.issuer, key.kid))
	})
	return errors.Join(bad...)
}

// publish puts the feeds' keys in force. Keys of earlier sources win. The caller
// holds mu or is alone.
func (k *keeper) publish(clash func(*feed, *key)) {
	sets := make([][]*key, 0, 1+len(k.feeds))
	sets = append(sets, []*key{k.a.secret})
	for _, f := range k.feeds {
		sets = append(sets, f.keys)
	}
	r := newRing(func(lost *key) {
		for _, f := range k.feeds {
			if slices.Contains(f.keys, lost) {
				clash(f, lost)
			}
		}
	}, sets...)
	was := k.a.state.Load()
	remembered := was.cache
	if !r.keeps(was.ring) {
		remembered = newCache(k.a.cfg.CacheSize)
	}
	k.a.state.Store(&state{r, remembered})
}

// follow reads a source again and again until the context ends.
func (k *keeper) follow(ctx context.Context, f *feed) {
	every := k.cfg.FileEvery
	if f.source.URL != "" {
		every = k.cfg.URLEvery
	}
	next := func() time.Duration {
		if f.failed {
			return min(every, f.pause)
		}
		return every
	}
	timer := time.NewTimer(next())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		case <-timer.C:
		}
		k.refresh(ctx, f)
		timer.Reset(next())
	}
}

// refresh reads a source once. If that fails, the last good keys stay in force.
func (k *keeper) refresh(ctx context.Context, f *feed) {
	read := f.begin()
	defer f.end(read)
	keys, bad, err := f.read(ctx)
	if ctx.Err() != nil {
		return
	}
	if k.cfg.Read != nil {
		k.cfg.Read(f.source.Name, err)
	}
	k.log(f, bad, err)
	if err != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if f.loaded && slices.EqualFunc(f.keys, keys, (*key).same) {
		return
	}
	f.keys, f.loaded = keys, true
	k.cfg.Log.Info("token keys changed", "source", f.source.Name, "kids", kids(keys))
	k.publish(func(f *feed, lost *key) {
		k.cfg.Log.Warn("a token key is not accepted: an earlier one has its issuer and kid",
			"source", f.source.Name, "kid", fmt.Sprintf("%.80q", lost.kid))
	})
}

// log tells of what went wrong, once and not every few seconds.
func (k *keeper) log(f *feed, bad []error, err error) {
	was, complaint := f.complaint, ""
	f.failed = err != nil
	switch {
	case err != nil:
		complaint = err.Error()
	case len(bad) > 0:
		complaint = errors.Join(bad...).Error()
	}
	f.complaint = complaint
	switch {
	case complaint == was:
	case err != nil:
		k.cfg.Log.Warn("token keys not read; the last good ones stay in force",
			"source", f.source.Name, "keys", len(f.keys), "error", err)
	case complaint != "":
		k.cfg.Log.Warn("some token keys are not accepted, the others are", "source", f.source.Name, "error", complaint)
	default:
		k.cfg.Log.Info("token keys are read again", "source", f.source.Name)
	}
}

func kids(keys []*key) []string {
	all := make([]string, 0, len(keys))
	for _, k := range keys {
		all = append(all, fmt.Sprintf("%.80q", k.kid))
	}
	return all
}

// await has the URLs of an issuer read again and waits for it. It says false if
// none is, because there is none or because it was read just now.
func (k *keeper) await(issuer string) bool {
	var reading []<-chan struct{}
	for _, f := range k.feeds {
		if f.source.URL != "" && f.source.Issuer == issuer {
			if read := f.ask(time.Now()); read != nil {
				reading = append(reading, read)
			}
		}
	}
	if len(reading) == 0 {
		return false
	}
	limit := time.NewTimer(awaitMax)
	defer limit.Stop()
	for _, read := range reading {
		select {
		case <-read:
		case <-k.done:
		case <-limit.C:
			return true // one of several may have answered
		}
	}
	return true
}

// Close ends the reading of keys. Tokens are verified with the last ones.
func (a *Authority) Close(context.Context) error {
	if a.keys == nil {
		return nil
	}
	a.keys.stop()
	a.keys.ended.Wait()
	return nil
}
