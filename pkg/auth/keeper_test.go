package auth

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hammer verifies tokens in the background until the test ends.
func hammer(t *testing.T, a *Authority, tokens ...string) {
	t.Helper()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					_, _ = a.Verify(tokens[i%len(tokens)])
				}
			}
		})
	}
	t.Cleanup(func() { close(stop); wg.Wait() })
}

// rotate goes through a rotation with overlap; publish changes what the source has.
func rotate(t *testing.T, a *Authority, publish func(doc []byte)) {
	t.Helper()
	older, newer := issuers()["ec"], issuers()["ec2"]
	oldToken, newToken := older.token(t, time.Now(), nil, nil), newer.token(t, time.Now(), nil, nil)
	hammer(t, a, oldToken, newToken) // so that both are remembered whenever they can be
	eventually(t, a, oldToken, true)

	publish(jwks(older.jwk(), newer.jwk()))
	eventually(t, a, newToken, true)
	for range 100 { // the overlap
		_, err := a.Verify(oldToken)
		require.NoError(t, err)
	}
	publish(jwks(newer.jwk()))
	eventually(t, a, oldToken, false)
	for range 1000 { // nothing brings it back, not even a Verify that was under way
		_, err := a.Verify(oldToken)
		require.ErrorIs(t, err, ErrToken)
		_, err = a.Verify(newToken)
		require.NoError(t, err)
	}
	publish(jwks()) // a provider that has withdrawn all
	eventually(t, a, newToken, false)
	_, err := a.Verify(must(a.Mint(1, Admin, time.Hour)))
	require.NoError(t, err, "the secret is always there")
}

func TestKeys_RotateAtAURL(t *testing.T) {
	older := issuers()["ec"]
	p := newProvider(t, jwks(older.jwk()))
	rotate(t, opened(t, older.source(at(p.URL))), p.says)
}

func TestKeys_RotateInAFile(t *testing.T) {
	older := issuers()["ec"]
	path := file(t, "keys.json", jwks(older.jwk()))
	rotate(t, opened(t, older.source(in(path))), func(doc []byte) {
		next := path + ".next"
		require.NoError(t, os.WriteFile(next, doc, 0o600))
		require.NoError(t, os.Rename(next, path))
	})
}

// The cache outlives what does not take a key away.
func TestKeys_AreRememberedTokensKeptWhenAKeyIsAdded(t *testing.T) {
	older, newer := issuers()["ec"], issuers()["ec2"]
	p := newProvider(t, jwks(older.jwk()))
	a := opened(t, older.source(at(p.URL)))
	before := a.state.Load()
	p.says(jwks(newer.jwk(), older.jwk()))
	eventually(t, a, newer.token(t, time.Now(), nil, nil), true)
	require.Same(t, before.cache, a.state.Load().cache)
	p.says(jwks(newer.jwk(), jwkOf(newer.key.Public(), map[string]any{"kid": older.kid}))) // one kid, another key
	eventually(t, a, older.token(t, time.Now(), nil, nil), false)
	require.NotSame(t, before.cache, a.state.Load().cache)
}

func TestKeys_TheLastGoodOnesStayWhenAReadingFails(t *testing.T) {
	ec, ec2 := issuers()["ec"], issuers()["ec2"]
	elsewhere := newProvider(t, jwks(ec2.jwk()))
	write := func(doc string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(doc)) }
	}
	var failed, read atomic.Int64
	var log lockedBuffer
	p := newProvider(t, jwks(ec.jwk()))
	a := openedWith(t, Keys{
		Sources: []Source{ec.source(at(p.URL))}, FileEvery: time.Hour, URLEvery: 5 * time.Millisecond,
		Log: slog.New(slog.NewTextHandler(&log, nil)),
		Read: func(source string, err error) {
			if source != "auth.keys[?]" {
				t.Error(source)
			}
			if read.Add(1); err != nil {
				failed.Add(1)
			}
		},
	}, time.Millisecond)
	token, unknown := ec.token(t, time.Now(), nil, nil), ec2.token(t, time.Now(), nil, nil)
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request){
		"500":           func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"404 with keys": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404); _, _ = w.Write(jwks(ec2.jwk())) },
		"redirect":      func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) },
		"cut off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9999")
			_, _ = w.Write([]byte("{"))
		},
		"broken":         func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"empty":          write(""),
		"half":           write(string(jwks(ec2.jwk())[:50])),
		"HTML":           write("<html>sign in</html>"),
		"no keys member": write(`{"error":"later"}`),
		"keys null":      write(`{"keys":null}`),
		"keys twice":     write(`{"keys":[],` + string(jwks(ec2.jwk()))[1:]),
		"too large":      write(string(jwks(ec2.jwk())) + strings.Repeat(" ", maxDocument)),
		"PEM":            write("x"),
	} {
		before := failed.Load()
		p.does(answer)
		require.Eventually(t, func() bool { return failed.Load() >= before+3 }, 10*time.Second, time.Millisecond, name)
		_, err := a.Verify(token)
		require.NoError(t, err, name)
		_, err = a.Verify(unknown)
		require.ErrorIs(t, err, ErrToken, name)
	}
	require.Contains(t, log.String(), "the last good ones stay in force")
	require.Contains(t, log.String(), p.URL)
	lines := strings.Count(log.String(), "\n")
	require.Less(t, lines, 60, "told once, not %d times", failed.Load())
	p.says(jwks(ec2.jwk()))
	eventually(t, a, unknown, true)
	eventually(t, a, token, false)
	require.Greater(t, read.Load(), failed.Load())
	require.Zero(t, elsewhere.reads.Load(), "a redirect is not followed")
}

func TestKeys_AFileThatIsGoneOrHalfWrittenKeepsItsKeys(t *testing.T) {
	ec, ec2 := issuers()["ec"], issuers()["ec2"]
	path := file(t, "keys.json", jwks(ec.jwk()))
	var failed atomic.Int64
	a := openedWith(t, Keys{
		Sources: []Source{ec.source(in(path))}, FileEvery: time.Millisecond, URLEvery: time.Hour,
		Read: func(_ string, err error) {
			if err != nil {
				failed.Add(1)
			}
		},
	}, time.Millisecond)
	token := ec.token(t, time.Now(), nil, nil)
	for _, change := range []func() error{
		func() error { return os.WriteFile(path, jwks(ec2.jwk())[:40], 0o600) },
		func() error {
			return os.WriteFile(path, jwks(ec2.jwk(), jwkOf(ec2.key.Public(), map[string]any{"kid": "p", "d": "x"})), 0o600)
		},
		func() error { return os.Remove(path) },
		func() error { return os.Mkdir(path, 0o700) },
	} {
		require.NoError(t, change())
		before := failed.Load()
		require.Eventually(t, func() bool { return failed.Load() >= before+3 }, 10*time.Second, time.Millisecond)
		_, err := a.Verify(token)
		require.NoError(t, err)
	}
}

func TestKeys_AnUnknownKidHasItsIssuerAskedAtOnce(t *testing.T) {
	ec, ec2 := issuers()["ec"], issuers()["ec2"]
	p := newProvider(t, jwks(ec.jwk()))
	other := newProvider(t, jwks(issuers()["ed"].jwk()))
	a := openedWith(t, Keys{
		Sources: []Source{ec.source(at(p.URL)), issuers()["ed"].source(at(other.URL))}, FileEvery: time.Hour, URLEvery: time.Hour,
	}, time.Nanosecond)
	p.says(jwks(ec.jwk(), ec2.jwk()))
	_, err := a.Verify(ec2.token(t, time.Now(), nil, nil))
	require.NoError(t, err, "the first token of a new key waits for it")
	require.EqualValues(t, 2, p.reads.Load())
	require.EqualValues(t, 1, other.reads.Load(), "whose issuer it is not")
	for _, token := range []string{
		ec.token(t, time.Now(), map[string]any{"iss": "https://nobody.example"}, map[string]any{"kid": "x"}), // no issuer of ours
		must(a.Mint(1, User, time.Hour)), ec.token(t, time.Now(), map[string]any{"sub": "x"}, nil),
	} {
		_, _ = a.Verify(token)
	}
	require.EqualValues(t, 2, p.reads.Load())
}

func TestKeys_AStampedeOfUnknownKidsReadsOncePerPause(t *testing.T) {
	ec := issuers()["ec"]
	p := newProvider(t, jwks(ec.jwk()))
	const pause = 100 * time.Millisecond
	a := openedWith(t, Keys{Sources: []Source{ec.source(at(p.URL))}, FileEvery: time.Hour, URLEvery: time.Hour}, pause)
	token := ec.token(t, time.Now(), nil, nil)
	invented := make([]string, 64)
	for i := range invented {
		invented[i] = ec.token(t, time.Now(), nil, map[string]any{"kid": fmt.Sprint("x", i)})
	}
	began := time.Now()
	var verified atomic.Int64
	var wg sync.WaitGroup
	for _, bad := range invented {
		wg.Go(func() {
			for time.Since(began) < 5*pause {
				if _, err := a.Verify(bad); err == nil {
					t.Error("an invented kid was accepted")
				}
				if _, err := a.Verify(token); err != nil {
					t.Error(err)
				}
				verified.Add(1)
			}
		})
	}
	wg.Wait()
	limit := 2 + int64(time.Since(began)/pause)
	require.Greater(t, p.reads.Load(), int64(1))
	require.LessOrEqual(t, p.reads.Load(), limit, "%d tokens", verified.Load())
}

func TestKeys_AProviderThatHangsHoldsNeitherTokensNorClose(t *testing.T) {
	ec := issuers()["ec"]
	p := newProvider(t, jwks(ec.jwk()))
	a := openedWith(t, Keys{Sources: []Source{ec.source(at(p.URL))}, FileEvery: time.Hour, URLEvery: time.Hour}, time.Nanosecond)
	asked := make(chan struct{})
	p.does(func(_ http.ResponseWriter, r *http.Request) { close(asked); <-r.Context().Done() })
	refused := make(chan error)
	waits := ec.token(t, time.Now(), nil, map[string]any{"kid": "x"})
	go func() {
		_, err := a.Verify(waits)
		refused <- err
	}()
	<-asked
	_, err := a.Verify(ec.token(t, time.Now(), nil, nil))
	require.NoError(t, err, "others do not wait")
	began := time.Now()
	require.NoError(t, a.Close(t.Context()))
	require.ErrorIs(t, <-refused, ErrToken)
	_, err = a.Verify(ec.token(t, time.Now(), nil, nil))
	require.NoError(t, err, "the last keys stay after Close")
	_, err = a.Verify(ec.token(t, time.Now(), nil, map[string]any{"kid": "y"}))
	require.ErrorIs(t, err, ErrToken)
	require.Less(t, time.Since(began), awaitMax)
}

func TestOpen_StartsWithAProviderThatIsAway(t *testing.T) {
	ec := issuers()["ec"]
	p := newProvider(t, nil)
	p.does(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	a := openedWith(t, Keys{Sources: []Source{ec.source(at(p.URL))}, FileEvery: time.Hour, URLEvery: time.Hour}, time.Millisecond)
	token := ec.token(t, time.Now(), nil, nil)
	_, err := a.Verify(token)
	require.ErrorIs(t, err, ErrToken)
	p.says(jwks(ec.jwk()))
	eventually(t, a, token, true)
}

// A provider that publishes a key under the kid of another one's changes nothing
// for that one, whichever stands first.
func TestKeys_OfOneKidBelongToTheirIssuers(t *testing.T) {
	ec, thief := issuers()["ec"], newIssuer(ES256, "e1", "https://thief.example/")
	p, q := newProvider(t, jwks(ec.jwk())), newProvider(t, jwks(thief.jwk()))
	for _, sources := range [][]Source{
		{ec.source(at(p.URL)), thief.source(at(q.URL))},
		{thief.source(at(q.URL)), ec.source(at(p.URL))},
	} {
		a := opened(t, sources...)
		for _, i := range []*issuer{ec, thief} {
			_, err := a.Verify(i.token(t, time.Now(), nil, nil))
			require.NoError(t, err)
		}
		_, err := a.Verify(thief.token(t, time.Now(), map[string]any{"iss": ec.iss}, nil))
		require.ErrorIs(t, err, ErrToken)
	}
	// Of two sources of one issuer, the first has the kid.
	a := opened(t, ec.source(at(p.URL)), ec.source(at(q.URL)))
	_, err := a.Verify(ec.token(t, time.Now(), nil, nil))
	require.NoError(t, err)
	_, err = a.Verify(thief.token(t, time.Now(), map[string]any{"iss": ec.iss}, nil))
	require.ErrorIs(t, err, ErrToken)
}

func TestOpen_NamesTheSourceAndTheFileThatIsBad(t *testing.T) {
	ec, ed := issuers()["ec"], issuers()["ed"]
	dir := t.TempDir()
	path := file(t, "keys", nil)
	for _, c := range []struct {
		doc  []byte
		says string
	}{
		{nil, "neither PEM nor JSON"},
		{[]byte("ssh-ed25519 AAAA me"), "neither PEM nor JSON"},
		{bytes.ReplaceAll(ec.pem(), []byte("PUBLIC KEY"), []byte("CERTIFICATE")), "holds a CERTIFICATE"},
		{append(ec.pem(), ec.pem()...), "something follows"},
		{ed.pem(), "is a key for EdDSA, alg says ES256"},
		{bytes.Replace(ec.pem(), []byte("MFk"), []byte("AAA"), 1), "asn1"},
		{jwks(), "no ES256 key"},
		{jwks(ed.jwk()), "no ES256 key"},
		{jwks(ec.jwk(), ec.jwk()), `one before it with the kid "e1"`},
		{jwks(jwkOf(ec.key.Public(), map[string]any{"d": "AAAA"})), "private key"},
		{jwks(jwkOf(ec.key.Public(), map[string]any{"x": "AAAA"})), "want 32"},
		{jwks(jwkOf(ec.key.Public(), map[string]any{"x": must(jwkOf(ec.key.Public(), nil)["y"].(string), nil)})), "point"}, //nolint:forcetypeassert // it is text
		{jwks(jwkOf(ec.key.Public(), map[string]any{"kid": 1})), "kid is no text"},
		{[]byte(`{"kty":"EC"`), "no JSON object"},
		{[]byte(`{"a":1}`), "neither a JWK nor a JWKS"},
		{bytes.Repeat([]byte{' '}, maxDocument+1), "more than"},
	} {
		require.NoError(t, os.WriteFile(path, c.doc, 0o600))
		sources := []Source{ec.source(in(path))}
		for _, err := range []error{CheckFiles("likectl", sources), openError(t, sources)} {
			require.ErrorContains(t, err, "auth.keys[?]: key file "+path, "%s", c.doc)
			require.ErrorContains(t, err, c.says, "%s", c.doc)
		}
	}
	require.ErrorContains(t, CheckFiles("likectl", []Source{ec.source(in(dir))}), "no regular file")
	require.ErrorContains(t, CheckFiles("likectl", []Source{ec.source(in(filepath.Join(dir, "x")))}), "no such file")
	good := file(t, "ec.pem", ec.pem())
	require.NoError(t, CheckFiles("likectl", []Source{ec.source(in(good))}))
	for _, err := range []error{
		CheckFiles("likectl", []Source{ec.source(in(good)), ec.source(in(good))}),
		CheckFiles(ec.iss, []Source{ec.source(in(good))}), // the secret's issuer, and no kid either
	} {
		require.ErrorContains(t, err, `another key has its issuer "https://idp.example/" and kid ""`)
	}
}

func openError(t *testing.T, sources []Source) error {
	t.Helper()
	a, err := Open(t.Context(), Default(testSecret), Keys{
		Sources: sources, FileEvery: time.Hour, URLEvery: time.Hour, Log: slog.New(slog.DiscardHandler),
	})
	require.Nil(t, a)
	return err
}

// A set has keys for others; a bad one among them does not keep the rest away.
func TestKeys_OfASetForOthersArePassedOver(t *testing.T) {
	all := issuers()
	ec, ec2 := all["ec"], all["ec2"]
	var log lockedBuffer
	rsa := weakRSA()
	p := newProvider(t, jwks(
		all["ed"].jwk(),
		map[string]any{"kty": "oct", "kid": "o", "k": "AAAA"},
		jwkOf(ec2.key.Public(), map[string]any{"kid": "enc", "use": "enc"}),
		jwkOf(ec2.key.Public(), map[string]any{"kid": "ops", "key_ops": []string{"deriveKey"}}),
		jwkOf(ec2.key.Public(), map[string]any{"kid": "alg", "alg": "ECDH-ES"}),
		jwkOf(ec2.key.Public(), map[string]any{"kid": "priv", "d": "AAAA"}),
		jwkOf(rsa.Public(), map[string]any{"kid": "weak"}),
		ec.jwk(),
	))
	a := openedWith(t, Keys{
		Sources:   []Source{ec.source(at(p.URL)), all["rsa"].source(at(p.URL))},
		FileEvery: time.Hour, URLEvery: time.Hour, Log: slog.New(slog.NewTextHandler(&log, nil)),
	}, time.Hour)
	_, err := a.Verify(ec.token(t, time.Now(), nil, nil))
	require.NoError(t, err)
	for _, kid := range []string{"enc", "ops", "alg", "priv"} {
		_, err := a.Verify(ec2.token(t, time.Now(), nil, map[string]any{"kid": kid}))
		require.ErrorIs(t, err, ErrToken, kid)
	}
	weak := &issuer{kid: "weak", method: all["rsa"].method, key: rsa, iss: ec.iss}
	_, err = a.Verify(weak.token(t, time.Now(), nil, nil))
	require.ErrorIs(t, err, ErrToken)
	require.Contains(t, log.String(), "1024 bits, want 2048")
	require.Contains(t, log.String(), "private key")

	// With a kid, one key of the set is taken.
	a = openedWith(t, Keys{
		Sources:   []Source{ec.source(at(newProvider(t, jwks(ec.jwk(), ec2.jwk())).URL), func(s *Source) { s.KID = "e2" })},
		FileEvery: time.Hour, URLEvery: time.Hour,
	}, time.Hour)
	_, err = a.Verify(ec2.token(t, time.Now(), nil, nil))
	require.NoError(t, err)
	_, err = a.Verify(ec.token(t, time.Now(), nil, nil))
	require.ErrorIs(t, err, ErrToken)
}

func TestVerify_OnARememberedTokenOfAPublicKeyDoesNotAllocate(t *testing.T) {
	ec := issuers()["ec"]
	a := several(t)
	token := ec.token(t, start, nil, nil)
	_, err := a.Verify(token)
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := a.Verify(token); err != nil {
			t.Error(err)
		}
	}))
}

// FuzzParseKeys holds that no document crashes, and that what it gives is usable.
func FuzzParseKeys(f *testing.F) {
	for _, i := range issuers() {
		f.Add(jwks(i.jwk()), i.method.Alg())
		f.Add(i.pem(), i.method.Alg())
	}
	f.Fuzz(func(t *testing.T, doc []byte, alg string) {
		s := Source{Alg: alg}
		keys, _, err := parseKeys(doc, &s, &policy{})
		if err != nil {
			require.Empty(t, keys)
		}
		for _, k := range keys {
			require.Equal(t, alg, k.method.Alg())
			require.True(t, k.same(k))
			require.Error(t, k.method.Verify("a.b", make([]byte, 64), k.verify))
		}
	})
}

// lockedBuffer is a log that goroutines write and tests read.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
