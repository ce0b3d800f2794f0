package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"

	"likectl/pkg/auth"
	"likectl/pkg/erase"
	"likectl/pkg/httpapi"
	"likectl/pkg/likes"
)

// Load reads the configuration: overrides (from flags, by key such as
// "postgres.dsn") before the environment before the file before the defaults.
// An empty file name means no file. Every error is likes.ErrInvalid and names
// all keys that are wrong.
func Load(file string, overrides map[string]any) (Config, error) {
	l, err := Explain(file, overrides)
	if err != nil {
		return Config{}, err
	}
	return l.Config, l.Err()
}

// Problem is what is wrong with one key.
type Problem struct {
	Key  string `json:"key"`
	Text string `json:"problem"`
}

// joined is an error with a line per problem, nil if there are none.
func joined(problems []Problem) error {
	errs := make([]error, len(problems))
	for i, p := range problems {
		errs[i] = fmt.Errorf("%s: %s", p.Key, p.Text)
	}
	return errors.Join(errs...)
}

// read decodes the file and what overrides it. The error says that the file
// could not be read at all; problems with single keys leave those as they are by
// default.
func read(file string, overrides map[string]any) (*viper.Viper, Config, []Problem, error) {
	v := viper.NewWithOptions(viper.ExperimentalBindStruct())
	v.SetEnvPrefix(envPrefix)
	v.SetEnvKeyReplacer(strings.NewReplacer(".", "_"))
	v.AutomaticEnv()
	if file != "" {
		v.SetConfigFile(file)
		if err := v.ReadInConfig(); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil, Config{}, nil, likes.Errorf(likes.ErrInvalid, "configuration file %s does not exist", file)
			}
			return nil, Config{}, nil, likes.Errorf(likes.ErrInvalid, "read configuration file %s: %w", file, err)
		}
	}
	for key, value := range overrides {
		v.Set(key, value)
	}
	cfg := Default()
	cfg.file = file
	types := cfg.Items.Types
	cfg.Items.Types = nil // a file replaces the types, it does not add to the defaults
	defaults := cfg.Limits
	for _, b := range cfg.Limits.buckets() { // and the limits, entry by entry
		*b.limits = nil
	}
	problems := append(textProblems(v), decodeProblems(v.UnmarshalExact(&cfg, strictTypes))...)
	if cfg.Items.Types == nil {
		cfg.Items.Types = types
	}
	for i, b := range cfg.Limits.buckets() {
		if *b.limits == nil {
			*b.limits = *defaults.buckets()[i].limits
		}
	}
	return v, cfg, problems, nil
}

// decodeProblems takes the decoder's error apart, key by key. Its own texts speak
// of Go's types, and could quote a secret.
func decodeProblems(err error) (problems []Problem) {
	switch e := err.(type) { //nolint:errorlint // the tree of errors is walked
	case nil:
		return nil
	case *mapstructure.DecodeError:
		_, unknown, found := strings.Cut(e.Error(), "has invalid keys: ")
		switch {
		case !found:
			return []Problem{{e.Name(), wanted(e.Name())}}
		case strings.Contains(e.Name(), "["): // an entry of a list
			return []Problem{{e.Name(), "there is no such key: " + unknown}}
		default: // textProblems has said so
			return nil
		}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			problems = append(problems, decodeProblems(inner)...)
		}
		return problems
	case interface{ Unwrap() error }:
		return decodeProblems(e.Unwrap())
	default:
		return []Problem{{"configuration", err.Error()}}
	}
}

// wanted says what a key's value must look like.
func wanted(key string) string {
	text := "is a section, want keys below it"
	walk(reflect.ValueOf(Config{}), "", func(known string, v reflect.Value) {
		if key != known && !strings.HasPrefix(key, known+"[") {
			return
		}
		switch v.Interface().(type) {
		case time.Duration:
			text = "want a duration with its unit, such as 5s"
		case bool:
			text = "want true or false"
		case map[string]int:
			text = "want names with a whole number each"
		case string, Secret:
			text = "want a text"
		case float64:
			text = "want a number"
		case []string:
			text = "want a list of texts"
		default:
			text = "want a whole number"
		}
	})
	return text
}

// The greatest values of a batcher, many times what helps: every lane allocates
// its batch when it starts, and a greater one ends the process for want of memory.
const (
	maxLanes = 64
	maxBatch = 10_000
	maxQueue = 1_000_000
)

// maxKeys is 1.5 GB for one list of limits.
const maxKeys = 10_000_000

// Validate returns ErrInvalid that names every key out of range.
func (c Config) Validate() error {
	if err := joined(c.problems()); err != nil {
		return likes.Errorf(likes.ErrInvalid, "%w", err)
	}
	return nil
}

func (c Config) problems() (bad []Problem) {
	check := func(ok bool, key, want string) {
		if !ok {
			bad = append(bad, Problem{key, want})
		}
	}
	check(c.Tier >= 1 && c.Tier <= 5, "tier", "want 1 to 5")
	check(isAddress(c.Listen), "listen", fmt.Sprintf("%q is no address, want HOST:PORT, such as 127.0.0.1:8080", c.Listen))
	check(isAddress(c.AdminListen) && isLoopback(c.AdminListen), "admin_listen", "want HOST:PORT on this machine only, such as 127.0.0.1:9090")
	check(c.Listen != c.AdminListen || strings.HasSuffix(c.Listen, ":0"), "admin_listen", "is the same address as listen, want another port")
	check(!c.Embedded || c.Postgres.DSN == "", "embedded", "and postgres.dsn exclude each other: leave out one of them")
	check(c.Data != "", "data", "want a folder")
	check(c.Auth.Issuer != "", "auth.issuer", "must not be empty")
	check(c.Auth.Audience != "", "auth.audience", "must not be empty")
	check(c.Auth.FileRefresh <= maxRefresh, "auth.file_refresh", fmt.Sprintf("want at most %v", maxRefresh))
	check(c.Auth.JWKSRefresh <= maxRefresh, "auth.jwks_refresh", fmt.Sprintf("want at most %v", maxRefresh))
	if _, err := c.Auth.Sources(); err != nil {
		check(false, "auth.keys", err.Error())
	}
	check(c.Erase.MaxRate <= erase.MaxPerSecond, "erase.max_rate", fmt.Sprintf("want at most %d", erase.MaxPerSecond))
	check(c.Limits.MaxKeys <= maxKeys, "limits.max_keys", fmt.Sprintf("want at most %d", maxKeys))
	c.Limits.check(check)
	c.Abuse.check(check, c.HTTP.RequestTimeout)
	c.Visibility.check(check, c.HTTP.RequestTimeout)
	check(c.Log.Format == "text" || c.Log.Format == "json", "log.format", "want text or json")
	check(oneOf(c.Log.Level, "debug", "info", "warn", "error"), "log.level", "want debug, info, warn or error")
	for section, b := range map[string]Batch{"write": c.Write, "replay": c.Replay} {
		check(b.Lanes <= maxLanes, section+".lanes", fmt.Sprintf("want at most %d", maxLanes))
		check(b.MaxBatch <= maxBatch, section+".max_batch", fmt.Sprintf("want at most %d", maxBatch))
		check(b.MaxQueue <= maxQueue, section+".max_queue", fmt.Sprintf("want at most %d", maxQueue))
	}
	check(c.Write.MaxQueue >= c.Write.MaxBatch, "write.max_queue", "want at least write.max_batch")
	check(c.Replay.MaxQueue >= likes.MaxApply, "replay.max_queue", fmt.Sprintf("want at least %d, the largest call", likes.MaxApply))
	check(c.Write.MaxQueue >= likes.MaxApply, "write.max_queue", fmt.Sprintf("want at least %d, the largest call", likes.MaxApply))
	check(c.Tally.MaxQueue >= likes.MaxApply, "tally.max_queue", fmt.Sprintf("want at least %d, the largest call", likes.MaxApply))
	check(c.Postgres.StatementTimeout < min(c.Write.Timeout, c.Replay.Timeout, c.Tally.Timeout),
		"postgres.statement_timeout", "want less than write.timeout, replay.timeout and tally.timeout")
	check(c.Postgres.DSN == "" || c.Postgres.MaxConns > c.Write.Lanes+c.Replay.Lanes+c.Tally.Lanes, "postgres.max_conns",
		"want more than write.lanes, replay.lanes and tally.lanes together: each lane needs one, reads use the rest")
	check(c.HTTP.WriteTimeout > c.HTTP.ReadTimeout+c.HTTP.RequestTimeout, "http.write_timeout",
		"want more than http.read_timeout and http.request_timeout together")
	check(c.HTTP.MinVersionWait <= c.HTTP.RequestTimeout, "http.min_version_wait", "want at most http.request_timeout")
	if err := (httpapi.CORS{Origins: c.HTTP.CORS.Origins, MaxAge: c.HTTP.CORS.MaxAge}).Check(); err != nil {
		check(false, "http.cors", err.Error())
	}
	c.Telemetry.check(check)
	if _, err := c.ItemTypes(); err != nil {
		check(false, "items.types", err.Error())
	}
	walk(reflect.ValueOf(c), "", func(key string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Int, reflect.Int64:
			check(v.Int() > 0, key, "is a limit and must be above 0")
		default:
		}
	})
	return bad
}

// ItemTypes returns items.types as the domain's mapping.
func (c Config) ItemTypes() (likes.ItemTypes, error) {
	m := make(map[string]likes.ItemType, len(c.Items.Types))
	for name, n := range c.Items.Types {
		if n < 1 || n > 1<<15-1 {
			return likes.ItemTypes{}, likes.Errorf(likes.ErrInvalid, "%s is %d, want 1 to 32767", name, n)
		}
		m[name] = likes.ItemType(n)
	}
	return likes.NewItemTypes(m)
}

// maxRefresh bounds how long a key that its issuer has withdrawn is accepted.
const maxRefresh = 24 * time.Hour

// Sources returns auth.keys as the sources of pkg/auth, or ErrInvalid that names
// every entry with its key.
func (a Auth) Sources() ([]auth.Source, error) {
	sources := make([]auth.Source, 0, len(a.Keys))
	var bad []error
	for i, k := range a.Keys {
		name := fmt.Sprintf("auth.keys[%d]", i)
		s, err := k.source(name)
		if err == nil {
			err = s.Check()
		}
		if err != nil {
			bad = append(bad, likes.Errorf(likes.ErrInvalid, "%s.%w", name, err))
		}
		sources = append(sources, s)
	}
	return sources, errors.Join(bad...)
}

func (k AuthKey) source(name string) (auth.Source, error) {
	s := auth.Source{
		Name: name, File: k.File, URL: k.JWKSURL, Alg: k.Alg, KID: k.KID, Issuer: k.Issuer, Audience: k.Audience,
		ScopeClaim: k.ScopeClaim, UserClaim: k.UserClaim, ScopeValues: make(map[auth.Scope]string),
	}
	for _, word := range k.Scopes {
		scope, err := auth.ParseScope(word)
		if err != nil {
			return s, fmt.Errorf("scopes: %w", err)
		}
		s.Scopes = append(s.Scopes, scope)
	}
	for word, value := range k.ScopeValues {
		scope, err := auth.ParseScope(word)
		if err != nil {
			return s, fmt.Errorf("scope_values: %w", err)
		}
		s.ScopeValues[scope] = value
	}
	return s, nil
}

// isAddress says whether a listener can be told to use it. Port 0 is any that is
// free.
func isAddress(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// isLoopback says whether only this machine can reach a listener's address.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func oneOf(s string, of ...string) bool {
	for _, o := range of {
		if s == o {
			return true
		}
	}
	return false
}

// walk visits every key that holds a value, in the order of the struct; the
// entries of a list of structs by their index, and the list itself.
func walk(v reflect.Value, prefix string, visit func(key string, v reflect.Value)) {
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("mapstructure")
		if name == "" {
			continue // not a key
		}
		key := prefix + name
		f := v.Field(i)
		if f.Kind() == reflect.Struct {
			walk(f, key+".", visit)
			continue
		}
		visit(key, f)
		if f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct {
			for j := range f.Len() {
				walk(f.Index(j), fmt.Sprintf("%s[%d].", key, j), visit)
			}
		}
	}
}
