package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// issuer is a private key with what its tokens say.
type issuer struct {
	kid    string
	method jwt.SigningMethod
	key    crypto.Signer
	iss    string
}

// The issuers of the tests: an identity provider with RSA and P-256 keys, and a
// backend with Ed25519. RSA keys take long to make, so all tests share them.
var (
	issuers = sync.OnceValue(func() map[string]*issuer {
		return map[string]*issuer{
			"rsa":  newIssuer(RS256, "r1", "https://idp.example/"),
			"ec":   newIssuer(ES256, "e1", "https://idp.example/"),
			"ec2":  newIssuer(ES256, "e2", "https://idp.example/"),
			"ed":   newIssuer(EdDSA, "d1", "backend"),
			"evil": newIssuer(RS256, "r1", "https://idp.example/"), // not trusted
		}
	})
	weakRSA = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 1024)) })
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func newIssuer(alg, kid, iss string) *issuer {
	i := &issuer{kid: kid, iss: iss, method: jwt.GetSigningMethod(alg)}
	switch alg {
	case RS256:
		i.key = must(rsa.GenerateKey(rand.Reader, 2048))
	case ES256:
		i.key = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	case EdDSA:
		_, key, err := ed25519.GenerateKey(rand.Reader)
		i.key = must(key, err)
	}
	return i
}

// claims returns good claims with some replaced, or removed where the value is nil.
func (i *issuer) claims(now time.Time, changes jwt.MapClaims) jwt.MapClaims {
	c := jwt.MapClaims{
		"iss": i.iss, "aud": "likes", "sub": "42", "scope": "openid user", "exp": now.Add(time.Hour).Unix(), "iat": now.Unix(),
	}
	maps.Copy(c, changes)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

func (i *issuer) token(tb testing.TB, now time.Time, changes jwt.MapClaims, header map[string]any) string {
	tb.Helper()
	h := map[string]any{"kid": i.kid}
	maps.Copy(h, header)
	return signed(tb, i.method, i.key, i.claims(now, changes), h)
}

// jwk returns the public key as a member of a JWKS.
func (i *issuer) jwk() map[string]any {
	return jwkOf(i.key.Public(), map[string]any{"kid": i.kid, "use": "sig", "alg": i.method.Alg()})
}

func jwkOf(public any, members map[string]any) map[string]any {
	b64 := base64.RawURLEncoding.EncodeToString
	var m map[string]any
	switch k := public.(type) {
	case *rsa.PublicKey:
		m = map[string]any{"kty": "RSA", "n": b64(k.N.Bytes()), "e": b64(big.NewInt(int64(k.E)).Bytes())}
	case *ecdsa.PublicKey:
		point := must(k.Bytes())
		half := (len(point) - 1) / 2
		m = map[string]any{"kty": "EC", "crv": k.Params().Name, "x": b64(point[1 : 1+half]), "y": b64(point[1+half:])}
	case ed25519.PublicKey:
		m = map[string]any{"kty": "OKP", "crv": "Ed25519", "x": b64(k)}
	}
	maps.Copy(m, members)
	return m
}

func jwks(keys ...map[string]any) []byte {
	if keys == nil {
		keys = []map[string]any{}
	}
	return must(json.Marshal(map[string]any{"keys": keys}))
}

func (i *issuer) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: must(x509.MarshalPKIXPublicKey(i.key.Public()))})
}

// provider is a JWKS endpoint whose answer the test changes.
type provider struct {
	*httptest.Server
	mu     sync.Mutex
	answer func(http.ResponseWriter, *http.Request)
	reads  atomic.Int64
}

func newProvider(tb testing.TB, doc []byte) *provider {
	tb.Helper()
	p := &provider{}
	p.says(doc)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.reads.Add(1)
		p.mu.Lock()
		answer := p.answer
		p.mu.Unlock()
		answer(w, r)
	}))
	tb.Cleanup(p.Close)
	return p
}

func (p *provider) does(answer func(http.ResponseWriter, *http.Request)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

func (p *provider) says(doc []byte) {
	p.does(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(doc) })
}

func file(tb testing.TB, name string, doc []byte) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), name)
	require.NoError(tb, os.WriteFile(path, doc, 0o600))
	return path
}

// source returns a source of the issuer's keys for users.
func (i *issuer) source(change ...func(*Source)) Source {
	s := Source{
		Name: "auth.keys[?]", Alg: i.method.Alg(), Issuer: i.iss, Audience: "likes", Scopes: []Scope{User}, ScopeClaim: "scope",
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

func at(url string) func(*Source)  { return func(s *Source) { s.URL = url } }
func in(file string) func(*Source) { return func(s *Source) { s.File = file } }

// opened returns an authority for the sources that reads them again every 5 ms,
// whatever it is asked.
func opened(tb testing.TB, sources ...Source) *Authority {
	tb.Helper()
	return openedWith(tb, Keys{Sources: sources, FileEvery: 5 * time.Millisecond, URLEvery: 5 * time.Millisecond}, time.Millisecond)
}

func openedWith(tb testing.TB, keys Keys, pause time.Duration) *Authority {
	tb.Helper()
	if keys.Log == nil {
		keys.Log = slog.New(slog.DiscardHandler)
	}
	a, err := open(tb.Context(), Default(testSecret), keys, pause)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, a.Close(tb.Context())) })
	return a
}

// eventually waits until a token is accepted, or refused.
func eventually(tb testing.TB, a *Authority, token string, accepted bool) {
	tb.Helper()
	require.Eventually(tb, func() bool {
		_, err := a.Verify(token)
		return (err == nil) == accepted
	}, 10*time.Second, time.Millisecond)
}
