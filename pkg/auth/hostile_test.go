package auth

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

// several returns an authority with the secret, an identity provider that may
// give user with two keys of different algorithms, and a backend that may give
// user and service and names its user in another claim.
func several(tb testing.TB) *Authority {
	tb.Helper()
	all := issuers()
	idp := newProvider(tb, jwks(all["rsa"].jwk(), all["ec"].jwk()))
	a := openedWith(tb, Keys{
		Sources: []Source{
			all["rsa"].source(at(idp.URL)),
			all["ec"].source(at(idp.URL)),
			all["ed"].source(in(file(tb, "ed.pem", all["ed"].pem())), func(s *Source) {
				s.KID, s.Scopes, s.ScopeValues = "d1", []Scope{User, Service}, map[Scope]string{Service: "likes.write"}
			}),
		},
		FileEvery: time.Hour, URLEvery: time.Hour,
	}, time.Hour)
	a.now = func() time.Time { return start }
	return a
}

// crafted signs a header and claims that no library would write.
func crafted(tb testing.TB, i *issuer, header, claims string) string {
	tb.Helper()
	b64 := base64.RawURLEncoding.EncodeToString
	text := b64([]byte(header)) + "." + b64([]byte(claims))
	signature, err := i.method.Sign(text, i.key)
	require.NoError(tb, err)
	return text + "." + b64(signature)
}

func asText(tb testing.TB, v any) string {
	tb.Helper()
	b, err := json.Marshal(v)
	require.NoError(tb, err)
	return string(b)
}

// accepted are the bases of the hostile tokens, so that each of those fails for
// the reason it is named by.
func accepted(tb testing.TB) map[string]string {
	tb.Helper()
	all := issuers()
	rsa, ec, ed := all["rsa"], all["ec"], all["ed"]
	return map[string]string{
		"rsa":                     rsa.token(tb, start, nil, nil),
		"ec":                      ec.token(tb, start, nil, nil),
		"ed":                      ed.token(tb, start, nil, nil),
		"ours":                    hs256(tb, good()),
		"at+jwt":                  ec.token(tb, start, nil, map[string]any{"typ": "at+jwt"}),
		"typ missing":             crafted(tb, ec, `{"alg":"ES256","kid":"e1"}`, asText(tb, ec.claims(start, nil))),
		"foreign locations":       ec.token(tb, start, nil, map[string]any{"jku": "http://127.0.0.1:1/", "x5u": "http://127.0.0.1:1/", "x5t": "a"}),
		"scopes as a list":        ec.token(tb, start, jwt.MapClaims{"scope": []string{"openid", "user"}}, nil),
		"scope twice":             ec.token(tb, start, jwt.MapClaims{"scope": "user user"}, nil),
		"audiences":               ec.token(tb, start, jwt.MapClaims{"aud": []string{"x", "likes"}}, nil),
		"crafted":                 crafted(tb, ec, `{"alg":"ES256","kid":"e1"}`, asText(tb, ec.claims(start, nil))),
		"a member in other case":  crafted(tb, ec, `{"alg":"ES256","kid":"e1","KID":"x"}`, `{"SUB":"1","Exp":0,`+asText(tb, ec.claims(start, nil))[1:]),
		"sub with an escape":      crafted(tb, ec, `{"alg":"ES256","kid":"e1"}`, strings.Replace(asText(tb, ec.claims(start, nil)), `"42"`, `"\u0034\u0032"`, 1)),
		"ten years of life":       ec.token(tb, start, jwt.MapClaims{"exp": start.Add(MaxTTL).Unix()}, nil),
		"service where it may be": ed.token(tb, start, jwt.MapClaims{"scope": "likes.write"}, nil),
	}
}

func hostile(tb testing.TB) map[string]string {
	tb.Helper()
	all := issuers()
	rsa, ec, ed, evil := all["rsa"], all["ec"], all["ed"], all["evil"]
	valid := ec.token(tb, start, nil, nil)
	parts := strings.Split(valid, ".")
	b64 := base64.RawURLEncoding.EncodeToString
	body := asText(tb, ec.claims(start, nil))
	es := `{"alg":"ES256","kid":"e1"}`
	kid := func(s string) map[string]any { return map[string]any{"kid": s} }
	rsaDER, err := x509.MarshalPKIXPublicKey(rsa.key.Public())
	require.NoError(tb, err)
	hmac := func(key []byte, k, iss string) string {
		return signed(tb, jwt.SigningMethodHS256, key, rsa.claims(start, jwt.MapClaims{"iss": iss}), kid(k))
	}
	say := func(i *issuer, changes jwt.MapClaims) string { return i.token(tb, start, changes, nil) }
	head := func(h map[string]any) string { return ec.token(tb, start, nil, h) }
	unsigned := func(alg string) string {
		return b64([]byte(`{"alg":"`+alg+`","kid":"e1"}`)) + "." + parts[1] + "."
	}
	last := parts[2][len(parts[2])-1]
	return map[string]string{
		// The algorithm is the key's.
		"alg none":                        unsigned("none"),
		"alg NONE":                        unsigned("NONE"),
		"alg nOnE":                        unsigned("nOnE"),
		"alg none with a signature":       b64([]byte(`{"alg":"none","kid":"e1"}`)) + "." + parts[1] + "." + parts[2],
		"alg twice":                       crafted(tb, ec, `{"alg":"none","alg":"ES256","kid":"e1"}`, body),
		"alg blank":                       unsigned(""),
		"HS256 with the RSA PEM":          hmac(rsa.pem(), "r1", rsa.iss),
		"HS256 with the RSA DER":          hmac(rsaDER, "r1", rsa.iss),
		"HS256 with the EC PEM":           hmac(ec.pem(), "e1", ec.iss),
		"HS256 with the Ed25519 key":      hmac(ed.pem(), "d1", ed.iss),
		"our secret for another's iss":    hmac(testSecret, "", rsa.iss),
		"our secret, kid of another":      hmac(testSecret, "r1", "likectl"),
		"RS384 with the RS256 key":        signed(tb, jwt.SigningMethodRS384, rsa.key, rsa.claims(start, nil), kid("r1")),
		"PS256 with the RS256 key":        signed(tb, jwt.SigningMethodPS256, rsa.key, rsa.claims(start, nil), kid("r1")),
		"ES256 header, Ed25519 signature": crafted(tb, ed, `{"alg":"ES256","kid":"d1"}`, asText(tb, ed.claims(start, nil))),
		"EdDSA header, ECDSA signature":   crafted(tb, ec, `{"alg":"EdDSA","kid":"e1"}`, body),
		// The kid is a map key, and the issuer's.
		"kid of another key":          ec.token(tb, start, nil, kid("r1")),
		"kid of another issuer's key": ed.token(tb, start, nil, kid("e1")),
		"kid unknown":                 head(kid("e9")),
		"kid missing":                 crafted(tb, ec, `{"alg":"ES256"}`, body),
		"kid is a path":               head(kid("../../../../dev/null")),
		"kid is a query":              head(kid("e1' OR '1'='1")),
		"kid is a URL":                head(kid("http://127.0.0.1:1/")),
		"kid with a zero":             head(kid("e1\x00")),
		"kid in capitals":             head(kid("E1")),
		"kid is null":                 crafted(tb, ec, `{"alg":"ES256","kid":null}`, body),
		"kid is a list":               crafted(tb, ec, `{"alg":"ES256","kid":["e1"]}`, body),
		"kid twice":                   crafted(tb, ec, `{"alg":"ES256","kid":"e2","kid":"e1"}`, body),
		// Keys come from the configuration and from nowhere else.
		"key of its own, jwk": evil.token(tb, start, nil, map[string]any{"jwk": evil.jwk()}),
		"key of its own, jku": evil.token(tb, start, nil, map[string]any{"jku": "http://127.0.0.1:1/jwks"}),
		"key of its own, x5c": evil.token(tb, start, nil, map[string]any{"x5c": []string{"AAAA"}}),
		"key of its own, x5u": evil.token(tb, start, nil, map[string]any{"x5u": "http://127.0.0.1:1/cert"}),
		"another RSA key":     evil.token(tb, start, nil, nil),
		// The header.
		"crit":             head(map[string]any{"crit": []string{"exp"}}),
		"crit empty":       head(map[string]any{"crit": []string{}}),
		"crit null":        crafted(tb, ec, `{"alg":"ES256","kid":"e1","crit":null}`, body),
		"b64 false":        head(map[string]any{"b64": false}),
		"nested, cty":      head(map[string]any{"cty": "JWT"}),
		"nested, claims":   crafted(tb, ec, es, asText(tb, valid)),
		"typ logout":       head(map[string]any{"typ": "logout+jwt"}),
		"typ dpop":         head(map[string]any{"typ": "dpop+jwt"}),
		"typ is a number":  head(map[string]any{"typ": 1}),
		"header is a list": crafted(tb, ec, `["ES256"]`, body),
		"header and more":  crafted(tb, ec, es+`{}`, body),
		"zip":              crafted(tb, ec, `{"alg":"ES256","kid":"e1","enc":"A256GCM","typ":"JWE"}`, body),
		// The claims, one reading of them.
		"sub twice":              crafted(tb, ec, es, `{"sub":"1",`+body[1:]),
		"sub twice, one escaped": crafted(tb, ec, es, `{"s\u0075b":"1",`+body[1:]),
		"scope twice":            crafted(tb, ec, es, `{"scope":"user",`+body[1:]),
		"exp twice":              crafted(tb, ec, es, `{"exp":1,`+body[1:]),
		"claims are null":        crafted(tb, ec, es, `null`),
		"claims are a list":      crafted(tb, ec, es, `[`+body+`]`),
		"claims and more":        crafted(tb, ec, es, body+`{}`),
		"claims cut off":         crafted(tb, ec, es, body[:len(body)-1]),
		"SUB for sub":            crafted(tb, ec, es, strings.Replace(body, `"sub"`, `"SUB"`, 1)),
		// Times.
		"exp missing":          say(ec, jwt.MapClaims{"exp": nil}),
		"exp null":             crafted(tb, ec, es, strings.Replace(body, `"exp":`, `"exp":null,"x":`, 1)),
		"exp text":             say(ec, jwt.MapClaims{"exp": "9999999999"}),
		"exp a list":           say(ec, jwt.MapClaims{"exp": []int{1}}),
		"exp in 11 years":      say(ec, jwt.MapClaims{"exp": start.Add(MaxTTL + 24*365*time.Hour).Unix()}),
		"exp in the year 9999": say(ec, jwt.MapClaims{"exp": maxDate}),
		"exp 2^63":             say(ec, jwt.MapClaims{"exp": uint64(1 << 63)}),
		"exp 1e300":            crafted(tb, ec, es, strings.Replace(body, `"exp":`, `"exp":1e300,"x":`, 1)),
		"exp 1e999":            crafted(tb, ec, es, strings.Replace(body, `"exp":`, `"exp":1e999,"x":`, 1)),
		"exp -1e300":           crafted(tb, ec, es, strings.Replace(body, `"exp":`, `"exp":-1e300,"x":`, 1)),
		"nbf in the future":    say(ec, jwt.MapClaims{"nbf": start.Add(31 * time.Second).Unix()}),
		"nbf text":             say(ec, jwt.MapClaims{"nbf": "0"}),
		"iat in the future":    say(ec, jwt.MapClaims{"iat": start.Add(31 * time.Second).Unix()}),
		// Issuer and audience are the key's.
		"iss of another":           say(ec, jwt.MapClaims{"iss": ed.iss}),
		"iss ours":                 say(ec, jwt.MapClaims{"iss": "likectl"}),
		"iss without a slash":      say(ec, jwt.MapClaims{"iss": strings.TrimSuffix(ec.iss, "/")}),
		"iss missing":              say(ec, jwt.MapClaims{"iss": nil}),
		"iss a list":               say(ec, jwt.MapClaims{"iss": []string{ec.iss}}),
		"aud missing":              say(ec, jwt.MapClaims{"aud": nil}),
		"aud ours":                 say(ec, jwt.MapClaims{"aud": "likectl"}),
		"aud list without":         say(ec, jwt.MapClaims{"aud": []string{"like", "likes2"}}),
		"aud empty list":           say(ec, jwt.MapClaims{"aud": []string{}}),
		"aud list of lists":        say(ec, jwt.MapClaims{"aud": []any{[]string{"likes"}}}),
		"aud list with a null":     say(ec, jwt.MapClaims{"aud": []any{"likes", nil}}),
		"aud an object":            say(ec, jwt.MapClaims{"aud": map[string]any{"likes": true}}),
		"ours with their audience": hs256(tb, with(jwt.MapClaims{"aud": "likes"})),
		// Scopes are what the key may give.
		"user's provider says admin":         say(ec, jwt.MapClaims{"scope": "admin"}),
		"user's provider says service":       say(rsa, jwt.MapClaims{"scope": "service"}),
		"user and admin":                     say(ec, jwt.MapClaims{"scope": "user admin"}),
		"admin in a list":                    say(ec, jwt.MapClaims{"scope": []string{"user", "admin"}}),
		"words in a list":                    say(ec, jwt.MapClaims{"scope": []string{"user admin"}}),
		"two that it may give":               say(ed, jwt.MapClaims{"scope": "user likes.write"}),
		"backend says admin":                 say(ed, jwt.MapClaims{"scope": "admin"}),
		"service by a name that is replaced": say(ed, jwt.MapClaims{"scope": "service"}),
		"scope missing":                      say(ec, jwt.MapClaims{"scope": nil}),
		"scope null":                         crafted(tb, ec, es, strings.Replace(body, `"scope":`, `"scope":null,"x":`, 1)),
		"scope true":                         say(ec, jwt.MapClaims{"scope": true}),
		"scope in capitals":                  say(ec, jwt.MapClaims{"scope": "USER"}),
		"scope with a comma":                 say(ec, jwt.MapClaims{"scope": "user,admin"}),
		"scope with a wide letter":           say(ec, jwt.MapClaims{"scope": "ｕser"}),
		// One spelling of one user.
		"sub with full-width digits":  say(ec, jwt.MapClaims{"sub": "４２"}),
		"sub with arabic digits":      say(ec, jwt.MapClaims{"sub": "٤٢"}),
		"sub with a zero-width space": say(ec, jwt.MapClaims{"sub": "42\u200b"}),
		"sub with a direction mark":   say(ec, jwt.MapClaims{"sub": "\u202e24"}),
		"sub with a byte order mark":  say(ec, jwt.MapClaims{"sub": "\ufeff42"}),
		"sub with a zero":             say(ec, jwt.MapClaims{"sub": "42\x00"}),
		"sub with a combining mark":   say(ec, jwt.MapClaims{"sub": "42\u0301"}),
		"sub with a line break":       say(ec, jwt.MapClaims{"sub": "42\n"}),
		"sub +42":                     say(ec, jwt.MapClaims{"sub": "+42"}),
		"sub 042":                     say(ec, jwt.MapClaims{"sub": "042"}),
		"sub 4_2":                     say(ec, jwt.MapClaims{"sub": "4_2"}),
		"sub 0x2a":                    say(ec, jwt.MapClaims{"sub": "0x2a"}),
		"sub 42.0":                    say(ec, jwt.MapClaims{"sub": "42.0"}),
		"sub a number":                say(ec, jwt.MapClaims{"sub": 42}),
		"sub a provider's id":         say(ec, jwt.MapClaims{"sub": "auth0|42"}),
		"sub missing":                 say(ec, jwt.MapClaims{"sub": nil}),
		// One spelling of one token.
		"padding":              valid + "=",
		"padding, two":         valid + "==",
		"padding inside":       parts[0] + "=." + parts[1] + "." + parts[2],
		"percent":              valid + "%3D",
		"standard alphabet":    parts[0] + "." + parts[1] + ".+/" + parts[2][2:],
		"another last letter":  valid[:len(valid)-1] + string(last+1),
		"trailing garbage":     valid + "AAAA",
		"trailing dot":         valid + ".",
		"leading dot":          "." + valid,
		"five parts":           valid + "." + parts[0] + "." + parts[1],
		"JSON serialisation":   `{"protected":"` + parts[0] + `","payload":"` + parts[1] + `","signature":"` + parts[2] + `"}`,
		"line break":           valid + "\n",
		"signature of zeros":   parts[0] + "." + parts[1] + "." + b64(make([]byte, 64)),
		"signature in DER":     parts[0] + "." + parts[1] + "." + b64([]byte{0x30, 6, 2, 1, 1, 2, 1, 1}),
		"signature of another": parts[0] + "." + parts[1] + "." + strings.Split(say(ec, jwt.MapClaims{"sub": "43"}), ".")[2],
		"claims of another":    parts[0] + "." + strings.Split(say(ec, jwt.MapClaims{"sub": "43"}), ".")[1] + "." + parts[2],
	}
}

func TestVerify_AcceptsTheBasesOfTheHostileTokensOfSeveralKeys(t *testing.T) {
	a := several(t)
	for name, token := range accepted(t) {
		id, err := a.Verify(token)
		require.NoError(t, err, name)
		require.EqualValues(t, 42, id.User, name)
	}
	id, err := a.Verify(accepted(t)["service where it may be"])
	require.NoError(t, err)
	require.Equal(t, Service, id.Scope)
}

func TestVerify_RefusesHostileTokensOfSeveralKeys(t *testing.T) {
	a := several(t)
	tokens := hostile(t)
	require.Greater(t, len(tokens), 100)
	for name, token := range tokens {
		for range 2 {
			_, err := a.Verify(token)
			require.ErrorIs(t, err, ErrToken, name)
			require.NotErrorIs(t, err, likes.ErrInvalid, "%s is no fault of the request", name)
		}
	}
	for _, exp := range []time.Time{start.Add(-31 * time.Second), time.Unix(0, 0), time.Unix(-maxDate, 0)} {
		_, err := a.Verify(issuers()["rsa"].token(t, start, jwt.MapClaims{"exp": exp.Unix()}, nil))
		require.ErrorIs(t, err, ErrExpired)
	}
}

// The algorithm is compared before a key is handed to it: what the library makes
// of a key of the wrong kind is not relied on.
func TestFind_GivesNoKeyToAnotherAlgorithm(t *testing.T) {
	a := several(t)
	for _, kid := range []string{"r1", "e1", "d1"} {
		i := issuers()[map[string]string{"r1": "rsa", "e1": "ec", "d1": "ed"}[kid]]
		for _, alg := range []string{"HS256", EdDSA, ES256, RS256} {
			token := &jwt.Token{
				Raw:    base64.RawURLEncoding.EncodeToString([]byte(`{"kid":"` + kid + `"}`)),
				Method: jwt.GetSigningMethod(alg), Claims: &claims{iss: i.iss},
			}
			key, err := a.state.Load().ring.find(token)
			if alg == i.method.Alg() {
				require.NoError(t, err)
				continue
			}
			require.ErrorIs(t, err, errAlgorithm)
			require.Nil(t, key)
		}
	}
}

// A provider without a claim for scopes gives each token the one it may give.
func TestVerify_WithoutAScopeClaimTheScopeIsFixed(t *testing.T) {
	ec := issuers()["ec"]
	a := opened(t, ec.source(in(file(t, "ec.json", jwks(ec.jwk()))), func(s *Source) { s.ScopeClaim, s.UserClaim = "", "uid" }))
	for _, scope := range []any{nil, "admin", []string{"service", "admin"}, 1} {
		id, err := a.Verify(ec.token(t, time.Now(), jwt.MapClaims{"scope": scope, "sub": "auth0|x", "uid": "7"}, nil))
		require.NoError(t, err)
		require.Equal(t, Identity{User: likes.UserID(7), Scope: User}, id)
	}
	_, err := a.Verify(ec.token(t, time.Now(), nil, nil))
	require.ErrorIs(t, err, ErrToken, "uid is missing, sub is not read")
}

// FuzzVerify holds that nothing is accepted but what an issuer has signed.
func FuzzVerify(f *testing.F) {
	a := several(f)
	good := slices.Collect(maps.Values(accepted(f)))
	for _, token := range good {
		f.Add(token)
	}
	for _, token := range hostile(f) {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		if id, err := a.Verify(token); err == nil {
			require.Contains(t, good, token, "%+v", id)
		} else {
			require.True(t, err == ErrExpired || len(err.Error()) < 300, err) //nolint:errorlint // the length is what counts
		}
	})
}
