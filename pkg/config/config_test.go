package config

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/viper"
	"github.com/stretchr/testify/require"

	"likectl/pkg/auth"
	"likectl/pkg/likes"
	"likectl/pkg/limit"
)

const example = "../../configs/tier1.yaml"

func write(t *testing.T, yaml string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(file, []byte(yaml), 0o600))
	return file
}

func TestEveryFieldHasDocDefaultAndAnEntryInTheExample(t *testing.T) {
	v := viper.New()
	v.SetConfigFile(example)
	require.NoError(t, v.ReadInConfig())
	walk(reflect.ValueOf(Default()), "", func(key string, f reflect.Value) {
		key = strings.NewReplacer("[", ".", "]", "").Replace(key) // limits.like[0].limit
		require.True(t, v.IsSet(key), "%s is not in %s", key, example)
		off := slices.Contains([]string{"postgres.dsn", "abuse.reputation.file", "abuse.scorer.url", "abuse.scorer.token_file", "telemetry.otlp_endpoint", "visibility.authorizer.url", "visibility.authorizer.token_file"}, key)
		if !off && f.Kind() != reflect.Bool {
			require.False(t, f.IsZero(), "%s has no default", key)
		}
	})
	var docs func(reflect.Type)
	docs = func(s reflect.Type) {
		for i := range s.NumField() {
			f := s.Field(i)
			if !f.IsExported() {
				continue
			}
			require.NotEmpty(t, f.Tag.Get("doc"), "%s.%s", s.Name(), f.Name)
			of := f.Type
			if of.Kind() == reflect.Slice {
				of = of.Elem()
			}
			if of.Kind() == reflect.Struct {
				docs(of)
			}
		}
	}
	docs(reflect.TypeOf(Config{}))
}

func TestTheExampleIsTheDefaultsPlusADatabase(t *testing.T) {
	got, err := Load(example, nil)
	require.NoError(t, err)
	want := Default()
	want.Postgres.DSN = got.Postgres.DSN
	want.file = example
	require.Equal(t, want, got)
	require.NotEmpty(t, got.Postgres.DSN)
}

// uncommented returns the example with the entries of auth.keys that it shows in
// a comment.
func uncommented(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(example)
	require.NoError(t, err)
	before, after, found := strings.Cut(string(data), "  keys: []\n")
	require.True(t, found)
	var block, rest strings.Builder
	for line := range strings.Lines(after) {
		if text, isComment := strings.CutPrefix(line, "  # "); isComment && rest.Len() == 0 {
			block.WriteString("  " + text)
		} else {
			rest.WriteString(line)
		}
	}
	return before + block.String() + rest.String()
}

func TestTheExampleShowsEveryKeyOfTheEntriesOfAuthKeys(t *testing.T) {
	cfg, err := Load(write(t, uncommented(t)), nil)
	require.NoError(t, err)
	require.Len(t, cfg.Auth.Keys, 2)
	shown := map[string]bool{}
	entry := func(key string) (string, bool) {
		_, name, found := strings.Cut(key, "].")
		return name, found && strings.HasPrefix(key, "auth.keys[")
	}
	walk(reflect.ValueOf(cfg), "", func(key string, f reflect.Value) {
		if name, found := entry(key); found {
			shown[name] = shown[name] || !f.IsZero()
		}
	})
	require.Len(t, shown, reflect.TypeFor[AuthKey]().NumField())
	for name, is := range shown {
		require.True(t, is, "auth.keys[].%s is not in %s", name, example)
	}
	sources, err := cfg.Auth.Sources()
	require.NoError(t, err)
	require.Equal(t, []auth.Source{
		{
			Name: "auth.keys[0]", URL: "https://login.example.com/.well-known/jwks.json", Alg: auth.RS256,
			Issuer: "https://login.example.com/", Audience: "likes", Scopes: []auth.Scope{auth.User},
			UserClaim: "like_user_id", ScopeValues: map[auth.Scope]string{},
		},
		{
			Name: "auth.keys[1]", File: "/etc/likectl/feed.pem", Alg: auth.EdDSA, KID: "feed-2026", Issuer: "feed", Audience: "likes",
			Scopes: []auth.Scope{auth.User, auth.Service}, ScopeClaim: "scope", ScopeValues: map[auth.Scope]string{auth.Service: "likes.write"},
		},
	}, sources)
}

func TestTheEntryInTheReadmeIsGood(t *testing.T) {
	data, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(data), "```yaml\nauth:\n")
	require.True(t, found)
	yaml, _, _ := strings.Cut(after, "```")
	cfg, err := Load(write(t, "auth:\n"+yaml), nil)
	require.NoError(t, err)
	require.Len(t, cfg.Auth.Keys, 1)
}

// What the front page shows of a configuration is accepted as it stands there.
func TestTheSnippetsInTheReadmeAreGood(t *testing.T) {
	data, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	snippets := strings.Split(string(data), "```yaml\n")[1:]
	require.Greater(t, len(snippets), 2)
	for _, snippet := range snippets {
		yaml, _, _ := strings.Cut(snippet, "```")
		_, err := Load(write(t, yaml), nil)
		require.NoError(t, err, yaml)
	}
}

func TestBadEntriesOfAuthKeysAreRefusedAndNamed(t *testing.T) {
	good := map[string]string{
		"file": "a.pem", "alg": "ES256", "issuer": "i", "audience": "a", "scopes": "[user]",
	}
	for _, c := range []struct{ key, value, want string }{
		{"alg", "", "auth.keys[1].alg"},
		{"alg", "none", "auth.keys[1].alg"},
		{"alg", "HS256", "auth.keys[1].alg"},
		{"alg", "es256", "auth.keys[1].alg"},
		{"alg", "[ES256, RS256]", "auth.keys[1].alg"},
		{"file", "", "auth.keys[1].file: want either"},
		{"jwks_url", "https://a.example/", "auth.keys[1].file: want either"},
		{"issuer", "", "auth.keys[1].issuer"},
		{"audience", "", "auth.keys[1].audience"},
		{"scopes", "[]", "auth.keys[1].scopes"},
		{"scopes", "[root]", "auth.keys[1].scopes"},
		{"scopes", "[user, admin]", "auth.keys[1].scope_claim"},
		{"scope_values", "{user: x}", "auth.keys[1].scope_values"},
		{"scope_values", "{root: x}", "auth.keys[1].scope_values"},
		{"scpoe_claim", "scope", "scpoe_claim"},
		{"key", "secret", "key"},
	} {
		var yaml strings.Builder
		yaml.WriteString("auth:\n  keys:\n    - {file: a.pem, alg: ES256, issuer: i, audience: a, scopes: [user]}\n    - ")
		entry := maps.Clone(good)
		entry[c.key] = c.value
		for i, key := range slices.Sorted(maps.Keys(entry)) {
			if i > 0 {
				yaml.WriteString("      ")
			}
			yaml.WriteString(key + ": " + entry[key] + "\n")
		}
		_, err := Load(write(t, yaml.String()), nil)
		require.ErrorIs(t, err, likes.ErrInvalid, yaml.String())
		require.ErrorContains(t, err, c.want, yaml.String())
	}
	for _, url := range []string{
		"http://a.example/jwks", "http://10.0.0.1/", "http://localhost.example/", "http://127.0.0.1.nip.io/", "ftp://localhost/", "https://",
		"/jwks.json", "https://u:p@a.example/", "https://a.example/#x", "https:a.example", "://", "file:///etc/passwd",
	} {
		_, err := Load(write(t, "auth:\n  keys:\n    - {jwks_url: '"+url+"', alg: ES256, issuer: i, audience: a, scopes: [user]}\n"), nil)
		require.ErrorIs(t, err, likes.ErrInvalid, url)
		require.ErrorContains(t, err, "auth.keys[0].jwks_url", url)
	}
	for _, url := range []string{"https://a.example/jwks?x=y", "http://localhost:1/", "http://127.0.0.2/", "http://[::1]:8/jwks"} {
		_, err := Load(write(t, "auth:\n  keys:\n    - {jwks_url: '"+url+"', alg: ES256, issuer: i, audience: a, scopes: [user]}\n"), nil)
		require.NoError(t, err, url)
	}
}

func TestPrecedence(t *testing.T) {
	file := write(t, "listen: file:81\nwrite:\n  lanes: 3\n  max_batch: 100\npostgres:\n  max_conns: 7\n")
	t.Setenv("LIKECTL_WRITE_LANES", "4")
	t.Setenv("LIKECTL_POSTGRES_MAX_CONNS", "9")
	got, err := Load(file, map[string]any{"postgres.max_conns": 11})
	require.NoError(t, err)
	require.Equal(t, 11, got.Postgres.MaxConns, "flag before environment")
	require.Equal(t, 4, got.Write.Lanes, "environment before file")
	require.Equal(t, 100, got.Write.MaxBatch, "file before default")
	require.Equal(t, Default().Write.MaxQueue, got.Write.MaxQueue)
	require.Equal(t, "file:81", got.Listen)
	require.Equal(t, file, got.File())
}

func TestDurationsAndTypesFromAFile(t *testing.T) {
	got, err := Load(write(t, "stop_timeout: 1m30s\nitems:\n  types: {video: 9}\n"), nil)
	require.NoError(t, err)
	require.Equal(t, 90*time.Second, got.Stop)
	require.Equal(t, map[string]int{"video": 9}, got.Items.Types)
}

func TestBadConfigurationIsRefusedAndNamed(t *testing.T) {
	for yaml, want := range map[string]string{
		"wirte:\n  lanes: 2\n":                       "wirte.lanes: there is no such key; the nearest is write.lanes",
		"write:\n  lanse: 2\n":                       "write.lanse: there is no such key; the nearest is write.lanes",
		"write:\n  timeout: 5\n":                     "write.timeout: durations need a unit: 5s",
		"write:\n  lanes: 0\n":                       "write.lanes",
		"write:\n  lanes: 1000000000\n":              "write.lanes: want at most 64",
		"replay:\n  max_batch: 1000000000\n":         "replay.max_batch: want at most 10000",
		"replay:\n  max_queue: 1000000000\n":         "replay.max_queue: want at most 1000000",
		"write:\n  lanes: -1\n":                      "write.lanes",
		"write:\n  lanes: many\n":                    "lanes",
		"http:\n  idle_timeout: 0s\n":                "http.idle_timeout",
		"listen: \"28130\"\n":                        "listen: \"28130\" is no address, want HOST:PORT",
		"listen: 127.0.0.1:99999\n":                  "want HOST:PORT",
		"admin_listen: 127.0.0.1:8080\n":             "is the same address as listen",
		"embedded: true\npostgres: {dsn: x}\n":       "embedded: and postgres.dsn exclude each other",
		"http:\n  max_body: -5\n":                    "http.max_body",
		"auth:\n  jwks_refresh: 0s\n":                "auth.jwks_refresh",
		"auth:\n  jwks_refresh: 25h\n":               "auth.jwks_refresh",
		"auth:\n  file_refresh: -1s\n":               "auth.file_refresh",
		"admin_listen: 0.0.0.0:9090\n":               "admin_listen",
		"postgres:\n  statement_timeout: 5s\n":       "postgres.statement_timeout",
		"tally:\n  max_queue: 10\n":                  "tally.max_queue",
		"tally:\n  timeout: 2s\n":                    "postgres.statement_timeout",
		"events:\n  retention: 0s\n":                 "events.retention",
		"postgres: {dsn: x, max_conns: 3}\n":         "postgres.max_conns",
		"tier: 6\n":                                  "tier",
		"log:\n  level: loud\n":                      "log.level",
		"write:\n  max_queue: 10\n  max_batch: 20\n": "write.max_queue",
		"items:\n  types: {post: 1, reel: 1}\n":      "items.types",
		"items:\n  types: {post: 70000}\n":           "items.types",
		"limits:\n  max_keys: 0\n":                   "limits.max_keys",
		"limits:\n  max_keys: 10000001\n":            "limits.max_keys: want at most 10000000",
		"limits:\n  like: []\n":                      "limits.like: 0 limits",
		"limits:\n  like: [{limit: 5}]\n":            "limits.like: window 0s",
		"limits:\n  ip: [{window: 1m}]\n":            "limits.ip: limit 0",
		"limits:\n  lkie: [{limit: 5}]\n":            "limits.lkie: there is no such key; the nearest is limits.like",
		"limits:\n  trusted_proxies: [all]\n":        "limits.trusted_proxies[0]",
		"limits:\n  trusted_proxies: [0.0.0.0/0]\n":  "limits.trusted_proxies[0]",
		"limits:\n  enabled: \"\"\n":                 "limits.enabled: want true or false",
		"limits:\n  enabled: 0\n":                    "limits.enabled: want true or false",
		"items:\n  registered: 1.5\n":                "items.registered: want true or false",
		"erase:\n  max_rate: true\n":                 "erase.max_rate: want a whole number",
		"erase:\n  max_rate: 1.9\n":                  "erase.max_rate: want a whole number",
		"visibility:\n  cache: true\n":               "visibility.cache: want a duration",
		"telemetry:\n  sample_ratio: \"\"\n":         "telemetry.sample_ratio: want a number",
		"auth:\n  issuer: true\n":                    "auth.issuer: want a text",
		"a: [\n":                                     "read configuration file",
	} {
		_, err := Load(write(t, yaml), nil)
		require.ErrorIs(t, err, likes.ErrInvalid, yaml)
		require.ErrorContains(t, err, want, yaml)
	}
	_, err := Load("/nowhere/c.yaml", nil)
	require.ErrorContains(t, err, "does not exist")
}

func TestUnknownVariablesAreRefusedAndNamed(t *testing.T) {
	t.Setenv("LIKECTL_SEED", "7") // what tests set is theirs
	t.Setenv("LIKECTL_TEST_ANYTHING", "7")
	t.Setenv("LIKECTL_WRITE_LANSE", "") // as if unset
	_, err := Load("", nil)
	require.NoError(t, err)
	t.Setenv("LIKECTL_POSTGRES_DNS", "postgres://u:hunter2@h/d")
	_, err = Load("", nil)
	require.ErrorIs(t, err, likes.ErrInvalid)
	require.ErrorContains(t, err, "LIKECTL_POSTGRES_DNS: sets nothing, although it is in the environment; the nearest is LIKECTL_POSTGRES_DSN")
	require.NotContains(t, err.Error(), "hunter2")
	t.Setenv("LIKECTL_POSTGRES_DNS", "")
	t.Setenv("LIKECTL_STOP_TIMEOUT", "30")
	_, err = Load("", nil)
	require.ErrorContains(t, err, "stop_timeout: durations need a unit: 30s")
}

func TestASecretIsNeverPrinted(t *testing.T) {
	c := Default()
	c.Postgres.DSN = "postgres://u:hunter2@h/d"
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		require.NotContains(t, fmt.Sprintf(verb, c), "hunter2", verb)
	}
	require.True(t, strings.HasPrefix(c.Postgres.DSN.Reveal(), "postgres://"))
}

func FuzzLoad(f *testing.F) {
	data, err := os.ReadFile(example)
	require.NoError(f, err)
	f.Add(string(data))
	f.Add("write:\n  lanes: 0\n")
	f.Add("items:\n  types: {post: 1e3}\n")
	f.Fuzz(func(t *testing.T, yaml string) {
		if cfg, err := Load(write(t, yaml), nil); err == nil {
			require.NoError(t, cfg.Validate())
		}
	})
}

func TestLimits(t *testing.T) {
	got, err := Load(write(t, "limits:\n  like: [{limit: 30, window: 1m}, {limit: 1000, window: 24h}]\n  trusted_proxies: [10.1.2.3/8, \"::1\"]\n"), nil)
	require.NoError(t, err)
	require.Equal(t, []Limit{{30, time.Minute}, {1000, 24 * time.Hour}}, got.Limits.Like)
	require.Equal(t, Default().Limits.Unlike, got.Limits.Unlike, "the others stay")
	proxies, err := got.Limits.Proxies()
	require.NoError(t, err)
	require.Equal(t, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}, proxies)
	buckets := got.Limits.Buckets()
	require.Equal(t, []limit.Limit{{Max: 30, Window: time.Minute}, {Max: 1000, Window: 24 * time.Hour}}, buckets["like"])
	require.Len(t, buckets, 7, "services are not limited")

	for _, bucket := range []string{"like", "unlike", "save", "unsave", "view", "share", "ip", "service"} {
		for _, bad := range []string{"{limit: 0, window: 1m}", "{limit: -1, window: 1m}", "{limit: 1, window: 0s}", "{limit: 1, window: 60}", "{limit: 1, window: -1m}"} {
			for _, enabled := range []string{"true", "false"} {
				_, err := Load(write(t, "limits:\n  enabled: "+enabled+"\n  "+bucket+": ["+bad+"]\n"), nil)
				require.ErrorIs(t, err, likes.ErrInvalid, "%s: %s", bucket, bad)
				require.ErrorContains(t, err, "limits."+bucket, bad)
			}
		}
	}
	t.Setenv("LIKECTL_LIMITS_ENABLED", "false")
	got, err = Load("", nil)
	require.NoError(t, err)
	require.False(t, got.Limits.Enabled)
}
