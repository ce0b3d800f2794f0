package auth

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

var testSecret = bytes.Repeat([]byte{7}, SecretSize)

// start is the clock of the tests: whole seconds, as the claims have.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// authority returns an authority whose clock the test moves.
func authority(tb testing.TB) (*Authority, *time.Time) {
	tb.Helper()
	a, err := New(Default(testSecret))
	require.NoError(tb, err)
	now := start
	a.now = func() time.Time { return now }
	return a, &now
}

func good() jwt.MapClaims {
	return jwt.MapClaims{
		"iss": "likectl", "aud": "likectl", "sub": "42", "scope": "user",
		"exp": start.Add(time.Hour).Unix(), "iat": start.Unix(),
	}
}

// with returns good claims with some replaced, or removed where the value is nil.
func with(changes jwt.MapClaims) jwt.MapClaims {
	c := good()
	maps.Copy(c, changes)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

func signed(tb testing.TB, m jwt.SigningMethod, key any, c jwt.MapClaims, header map[string]any) string {
	tb.Helper()
	t := jwt.NewWithClaims(m, c)
	maps.Copy(t.Header, header)
	s, err := t.SignedString(key)
	require.NoError(tb, err)
	return s
}

func hs256(tb testing.TB, c jwt.MapClaims) string {
	tb.Helper()
	return signed(tb, jwt.SigningMethodHS256, testSecret, c, nil)
}

func TestVerify_ReturnsWhatMintSaid(t *testing.T) {
	a, _ := authority(t)
	for _, scope := range []Scope{User, Service, Admin} {
		token, err := a.Mint(1<<63-1, scope, time.Hour)
		require.NoError(t, err)
		for range 2 { // verified, then remembered
			id, err := a.Verify(token)
			require.NoError(t, err)
			require.Equal(t, Identity{User: 1<<63 - 1, Scope: scope}, id)
		}
	}
}

func TestMint_RefusesWhatVerifyWould(t *testing.T) {
	a, _ := authority(t)
	for _, c := range []struct {
		user  likes.UserID
		scope Scope
		ttl   time.Duration
	}{
		{0, User, time.Hour},
		{-1, User, time.Hour},
		{1, 0, time.Hour},
		{1, 9, time.Hour},
		{1, User, 0},
		{1, User, -time.Hour},
		{1, User, time.Millisecond},
		{1, User, MaxTTL + 1},
	} {
		_, err := a.Mint(c.user, c.scope, c.ttl)
		require.ErrorIs(t, err, likes.ErrInvalid, "%+v", c)
	}
}

// The base is accepted, so each hostile token fails for the reason it is named by.
func TestVerify_TheBaseOfTheHostileTokensIsAccepted(t *testing.T) {
	a, _ := authority(t)
	for name, c := range map[string]jwt.MapClaims{
		"plain":               good(),
		"several audiences":   with(jwt.MapClaims{"aud": []string{"other", "likectl"}}),
		"more claims":         with(jwt.MapClaims{"email": "a@example.com"}),
		"nbf within leeway":   with(jwt.MapClaims{"nbf": start.Add(29 * time.Second).Unix()}),
		"expired in leeway":   with(jwt.MapClaims{"exp": start.Add(-29 * time.Second).Unix()}),
		"without iat":         with(jwt.MapClaims{"iat": nil}),
		"the greatest user":   with(jwt.MapClaims{"sub": "9223372036854775807"}),
		"exp with a fraction": with(jwt.MapClaims{"exp": float64(start.Unix()) + 0.5}),
	} {
		_, err := a.Verify(hs256(t, c))
		require.NoError(t, err, name)
	}
}

// Instances with different secrets refuse each other's tokens: the answer has to
// say that it is the signature, and no claim.
func TestVerify_NamesTheSignatureOfAForeignToken(t *testing.T) {
	a, _ := authority(t)
	foreign, err := New(Default(bytes.Repeat([]byte{8}, SecretSize)))
	require.NoError(t, err)
	token, err := foreign.Mint(42, User, time.Hour)
	require.NoError(t, err)
	_, err = a.Verify(token)
	require.ErrorIs(t, err, ErrToken)
	require.EqualError(t, err, "token is not valid: it is not signed with the secret or a key of this server")
}

func TestVerify_RefusesHostileTokens(t *testing.T) {
	a, _ := authority(t)
	valid := hs256(t, good())
	parts := strings.Split(valid, ".")
	b64 := base64.RawURLEncoding.EncodeToString
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	other := bytes.Repeat([]byte{8}, SecretSize)
	forged, err := json.Marshal(with(jwt.MapClaims{"sub": "43"}))
	require.NoError(t, err)
	last := parts[2][len(parts[2])-1]

	tokens := map[string]string{
		"alg none":               signed(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, good(), nil),
		"alg None, no signature": b64([]byte(`{"alg":"None"}`)) + "." + parts[1] + ".",
		"alg missing":            b64([]byte(`{"typ":"JWT"}`)) + "." + parts[1] + "." + parts[2],
		"alg is a number":        b64([]byte(`{"alg":256}`)) + "." + parts[1] + "." + parts[2],
		"alg HS512, same key":    signed(t, jwt.SigningMethodHS512, testSecret, good(), nil),
		"alg HS384, same key":    signed(t, jwt.SigningMethodHS384, testSecret, good(), nil),
		"alg ES256":              signed(t, jwt.SigningMethodES256, ec, good(), nil),
		"alg lower case":         b64([]byte(`{"alg":"hs256"}`)) + "." + parts[1] + "." + parts[2],
		"another key":            signed(t, jwt.SigningMethodHS256, other, good(), nil),
		"empty key":              signed(t, jwt.SigningMethodHS256, []byte{}, good(), nil),
		"unknown kid":            signed(t, jwt.SigningMethodHS256, testSecret, good(), map[string]any{"kid": "../../dev/null"}),
		"kid is a number":        signed(t, jwt.SigningMethodHS256, testSecret, good(), map[string]any{"kid": 1}),
		"critical extension":     signed(t, jwt.SigningMethodHS256, testSecret, good(), map[string]any{"crit": []string{"exp"}}),
		"claims replaced":        parts[0] + "." + b64(forged) + "." + parts[2],
		"signature empty":        parts[0] + "." + parts[1] + ".",
		"signature missing":      parts[0] + "." + parts[1],
		"signature truncated":    valid[:len(valid)-4],
		"signature lengthened":   valid + "AAAA",
		"another spelling":       valid[:len(valid)-1] + string(last+1), // the spare bits of base64
		"padding":                valid + "=",
		"line break inside":      parts[0] + "." + parts[1] + "." + parts[2][:10] + "\n" + parts[2][10:],
		"claims truncated":       parts[0] + "." + parts[1][:20] + "." + parts[2],
		"four parts":             valid + "." + parts[2],
		"two tokens":             valid + valid,
		"two tokens, blank":      valid + " " + valid,
		"empty":                  "",
		"dots":                   "..",
		"huge":                   hs256(t, with(jwt.MapClaims{"pad": strings.Repeat("x", MaxToken)})),
		"iss missing":            hs256(t, with(jwt.MapClaims{"iss": nil})),
		"iss of another":         hs256(t, with(jwt.MapClaims{"iss": "likectl2"})),
		"aud missing":            hs256(t, with(jwt.MapClaims{"aud": nil})),
		"aud of another":         hs256(t, with(jwt.MapClaims{"aud": []string{"a", "b"}})),
		"aud empty":              hs256(t, with(jwt.MapClaims{"aud": ""})),
		"exp missing":            hs256(t, with(jwt.MapClaims{"exp": nil})),
		"exp is text":            hs256(t, with(jwt.MapClaims{"exp": "tomorrow"})),
		"nbf in the future":      hs256(t, with(jwt.MapClaims{"nbf": start.Add(time.Minute).Unix()})),
		"iat in the future":      hs256(t, with(jwt.MapClaims{"iat": start.Add(time.Minute).Unix()})),
		"sub missing":            hs256(t, with(jwt.MapClaims{"sub": nil})),
		"sub 01":                 hs256(t, with(jwt.MapClaims{"sub": "01"})),
		"sub 0":                  hs256(t, with(jwt.MapClaims{"sub": "0"})),
		"sub negative":           hs256(t, with(jwt.MapClaims{"sub": "-1"})),
		"sub with a blank":       hs256(t, with(jwt.MapClaims{"sub": " 1"})),
		"sub too great":          hs256(t, with(jwt.MapClaims{"sub": "9223372036854775808"})),
		"sub is a number":        hs256(t, with(jwt.MapClaims{"sub": 42})),
		"scope missing":          hs256(t, with(jwt.MapClaims{"scope": nil})),
		"scope unknown":          hs256(t, with(jwt.MapClaims{"scope": "root"})),
		"scope in capitals":      hs256(t, with(jwt.MapClaims{"scope": "Admin"})),
		"two scopes":             hs256(t, with(jwt.MapClaims{"scope": "user admin"})),
		"scope is a list":        hs256(t, with(jwt.MapClaims{"scope": []string{"admin"}})),
	}
	for name, token := range tokens {
		for range 2 { // a refused token is not remembered as a good one
			_, err := a.Verify(token)
			require.ErrorIs(t, err, ErrToken, name)
			require.NotErrorIs(t, err, likes.ErrInvalid, "%s: the answer is 401, not 400", name)
			require.NotContains(t, err.Error(), string(testSecret))
		}
	}
	for _, exp := range []int64{start.Add(-31 * time.Second).Unix(), 0, -1} {
		_, err = a.Verify(hs256(t, with(jwt.MapClaims{"exp": exp})))
		require.ErrorIs(t, err, ErrExpired)
	}
}

func TestVerify_ARememberedTokenExpiresToo(t *testing.T) {
	a, now := authority(t)
	token, err := a.Mint(1, User, time.Minute)
	require.NoError(t, err)
	for _, after := range []time.Duration{0, time.Minute, 90*time.Second - 1} {
		*now = start.Add(after)
		_, err = a.Verify(token)
		require.NoError(t, err, after)
	}
	*now = start.Add(90 * time.Second) // ttl and leeway
	_, err = a.Verify(token)
	require.ErrorIs(t, err, ErrExpired)
}

func TestVerify_OnARememberedTokenDoesNotAllocate(t *testing.T) {
	a, _ := authority(t)
	token, err := a.Mint(1, User, time.Minute)
	require.NoError(t, err)
	_, err = a.Verify(token)
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := a.Verify(token); err != nil {
			t.Error(err)
		}
	}))
}

func TestNew_NamesWhatIsOutOfRange(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"secret":     func(c *Config) { c.Secret = c.Secret[:31] },
		"issuer":     func(c *Config) { c.Issuer = "" },
		"audience":   func(c *Config) { c.Audience = "" },
		"leeway":     func(c *Config) { c.Leeway = maxLeeway + 1 },
		"cache size": func(c *Config) { c.CacheSize = 0 },
	} {
		cfg := Default(testSecret)
		change(&cfg)
		_, err := New(cfg)
		require.ErrorIs(t, err, likes.ErrInvalid)
		require.ErrorContains(t, err, name)
	}
}

func TestBearer(t *testing.T) {
	for _, c := range []struct {
		name    string
		headers []string
		token   string
		err     error
	}{
		{"usual", []string{"Bearer abc"}, "abc", nil},
		{"lower case", []string{"bearer abc"}, "abc", nil},
		{"capitals", []string{"BEARER abc"}, "abc", nil},
		{"two blanks", []string{"Bearer  abc"}, "abc", nil},
		{"none", nil, "", ErrNoToken},
		{"empty", []string{""}, "", ErrNoToken},
		{"scheme alone", []string{"Bearer"}, "", ErrNoToken},
		{"scheme and blank", []string{"Bearer "}, "", ErrNoToken},
		{"no scheme", []string{"abc"}, "", ErrNoToken},
		{"another scheme", []string{"Basic abc"}, "", ErrNoToken},
		{"tab for blank", []string{"Bearer\tabc"}, "", ErrNoToken},
		{"glued", []string{"Bearerabc"}, "", ErrNoToken},
		{"two tokens", []string{"Bearer abc def"}, "", ErrToken},
		{"two in a list", []string{"Bearer abc,Bearer def"}, "", ErrToken},
		{"two headers", []string{"Bearer abc", "Bearer def"}, "", ErrToken},
	} {
		token, err := Bearer(c.headers)
		require.ErrorIs(t, err, c.err, c.name)
		require.Equal(t, c.token, token, c.name)
	}
}

func BenchmarkVerify(b *testing.B) {
	a, _ := authority(b)
	token, err := a.Mint(1, User, time.Hour)
	require.NoError(b, err)
	b.Run("remembered", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := a.Verify(token); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			a.state.Store(&state{a.state.Load().ring, newCache(1)})
			if _, err := a.Verify(token); err != nil {
				b.Fatal(err)
			}
		}
	})
}
