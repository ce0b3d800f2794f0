// Package config is the configuration of likectl: one struct, one strict
// loader. Precedence: flag, environment (LIKECTL_POSTGRES_DSN for postgres.dsn),
// file, default. A key that does not exist is an error, wherever it stands in
// the file, and so is a limit of 0 or below: there is no "unlimited".
package config

import (
	"time"

	"likectl/pkg/erase"
)

// Config is everything that can be set. Every field has a doc tag, a default in
// [Default] and an entry in configs/tier1.yaml; a test holds it to that.
type Config struct {
	Tier        int           `mapstructure:"tier" doc:"the architecture, 1 to 5"`
	Listen      string        `mapstructure:"listen" doc:"address of the API"`
	AdminListen string        `mapstructure:"admin_listen" doc:"loopback address of metrics, profiles and the admin API"`
	Data        string        `mapstructure:"data" doc:"data folder: the secret, and the database when embedded"`
	Embedded    bool          `mapstructure:"embedded" doc:"keep the likes in SQLite in the data folder; excludes postgres.dsn"`
	Stop        time.Duration `mapstructure:"stop_timeout" doc:"how long a shutdown waits for requests in flight"`

	Items    Items    `mapstructure:"items" doc:"what can be liked"`
	Postgres Postgres `mapstructure:"postgres" doc:"the database of tier 1"`
	Write    Batch    `mapstructure:"write" doc:"batching of likes and unlikes"`
	Replay   Batch    `mapstructure:"replay" doc:"batching of imports and other replays"`
	Tally    Batch    `mapstructure:"tally" doc:"batching of views and shares"`
	Events   Events   `mapstructure:"events" doc:"the events of views and shares"`
	Erase    Erase    `mapstructure:"erase" doc:"erasing users"`
	HTTP     HTTP     `mapstructure:"http" doc:"limits of the API listener"`
	Limits   Limits   `mapstructure:"limits" doc:"how often somebody may call, in this process"`
	Abuse    Abuse    `mapstructure:"abuse" doc:"how fake likes are kept out"`
	Hot      Hot      `mapstructure:"hot" doc:"items that are written most often"`
	Auth     Auth     `mapstructure:"auth" doc:"who may call"`
	Log      Log      `mapstructure:"log" doc:"logging to standard error"`

	Telemetry  Telemetry  `mapstructure:"telemetry" doc:"traces of requests"`
	Visibility Visibility `mapstructure:"visibility" doc:"who may see, and so like, an item"`

	file string // that it was loaded from, if any
}

// File returns the name of the file that the configuration was loaded from, or "".
func (c Config) File() string { return c.file }

// Items says what can be liked.
type Items struct {
	Types      map[string]int `mapstructure:"types" doc:"item type names and their stored numbers, 1 to 32767; never renumber"`
	Registered bool           `mapstructure:"registered" doc:"only items that PUT /v1/items has named exist; others answer 404"`
}

// Postgres is the database of tier 1.
type Postgres struct {
	DSN              Secret        `mapstructure:"dsn" doc:"connection string; a file needs it or embedded, without a file the default is SQLite in the data folder"`
	MaxConns         int           `mapstructure:"max_conns" doc:"connections of this instance; lanes need one each, reads use the rest"`
	StatementTimeout time.Duration `mapstructure:"statement_timeout" doc:"after which the server itself ends a statement"`
	AllowUnsafe      bool          `mapstructure:"allow_unsafe" doc:"serve although the server's fsync or full_page_writes is off and a crash loses likes"`
}

// Batch bounds a batcher.
type Batch struct {
	Lanes    int           `mapstructure:"lanes" doc:"transactions in flight at once"`
	MaxBatch int           `mapstructure:"max_batch" doc:"operations in one transaction"`
	MaxQueue int           `mapstructure:"max_queue" doc:"operations that may wait in a lane; beyond it calls are refused at once"`
	Timeout  time.Duration `mapstructure:"timeout" doc:"after which a transaction is given up as uncertain"`
}

// Events says how the events of views and shares are kept.
type Events struct {
	Retention time.Duration `mapstructure:"retention" doc:"how long an event id is remembered; must be longer than anybody repeats an event"`
}

// Erase says how erasures run and what their receipts say.
type Erase struct {
	MaxRate         int           `mapstructure:"max_rate" doc:"rows a second that a server erases which goes on with an unfinished erasure"`
	LogRetention    time.Duration `mapstructure:"log_retention" doc:"how long archived logs of the database and logs of requests are kept; named on receipts"`
	BackupRetention time.Duration `mapstructure:"backup_retention" doc:"how long backups are kept; named on receipts"`
}

// HTTP bounds the API listener.
type HTTP struct {
	RequestTimeout    time.Duration `mapstructure:"request_timeout" doc:"time for one request in the service"`
	ReadHeaderTimeout time.Duration `mapstructure:"read_header_timeout" doc:"time for a client to send its headers"`
	ReadTimeout       time.Duration `mapstructure:"read_timeout" doc:"time for a client to send its request"`
	WriteTimeout      time.Duration `mapstructure:"write_timeout" doc:"time from the headers to the end of the answer"`
	IdleTimeout       time.Duration `mapstructure:"idle_timeout" doc:"how long an unused connection is kept"`
	MaxBody           int64         `mapstructure:"max_body" doc:"bytes of a request body"`
	MaxHeader         int           `mapstructure:"max_header" doc:"bytes of a request's headers"`
	MaxConnections    int           `mapstructure:"max_connections" doc:"open connections; more are closed at once"`

	MinVersionWait time.Duration `mapstructure:"min_version_wait" doc:"how long a read waits for the version in Like-Min-Version, at most request_timeout"`

	Gzip bool `mapstructure:"gzip" doc:"compress answers from 1400 bytes on for clients that accept it"`
	CORS CORS `mapstructure:"cors" doc:"pages of other origins that may call the API from a browser"`
}

// CORS says which web pages may call the API from a browser.
type CORS struct {
	Origins []string      `mapstructure:"origins" doc:"exact origins, such as https://app.example.com, or * alone for all; empty: none, and no header"`
	MaxAge  time.Duration `mapstructure:"max_age" doc:"how long a browser may remember a preflight's answer, 1s to 24h"`
}

// Limits say how often somebody may call. Every process counts for itself.
type Limits struct {
	Enabled        bool     `mapstructure:"enabled" doc:"false: no call is limited"`
	TrustedProxies []string `mapstructure:"trusted_proxies" doc:"addresses or networks whose X-Forwarded-For is believed"`
	MaxKeys        int      `mapstructure:"max_keys" doc:"users or addresses remembered for each limit, about 150 bytes each; the idlest is forgotten"`

	Like    []Limit `mapstructure:"like" doc:"likes of a user; all limits of a list hold at once"`
	Unlike  []Limit `mapstructure:"unlike" doc:"unlikes of a user, apart from likes: a like can always be taken back"`
	Save    []Limit `mapstructure:"save" doc:"saves of a user"`
	Unsave  []Limit `mapstructure:"unsave" doc:"unsaves of a user"`
	View    []Limit `mapstructure:"view" doc:"views of a user, or of an address without a token"`
	Share   []Limit `mapstructure:"share" doc:"shares of a user"`
	IP      []Limit `mapstructure:"ip" doc:"requests of a client address, except those with a service token"`
	Service []Limit `mapstructure:"service" doc:"requests of the subject of a service token; empty: not limited"`
}

// Limit is so many calls in a window.
type Limit struct {
	Limit  int           `mapstructure:"limit" doc:"calls in the window"`
	Window time.Duration `mapstructure:"window" doc:"whole seconds; what was used comes back evenly over it"`
}

// Hot says which items are hot.
type Hot struct {
	Threshold int `mapstructure:"threshold" doc:"writes a second on an item, over 10 seconds, above which it is counted as hot"`
}

// Auth says whose tokens are accepted.
type Auth struct {
	Issuer   string        `mapstructure:"issuer" doc:"the iss claim of accepted tokens"`
	Audience string        `mapstructure:"audience" doc:"the aud claim of accepted tokens"`
	Leeway   time.Duration `mapstructure:"leeway" doc:"tolerated clock difference in exp and nbf"`
	Cache    int           `mapstructure:"cache" doc:"verified tokens remembered, so that the signature is checked once"`

	Keys        []AuthKey     `mapstructure:"keys" doc:"public keys of other issuers, beside the secret in the data folder"`
	FileRefresh time.Duration `mapstructure:"file_refresh" doc:"how often key files are read again; a removed key is accepted no longer"`
	JWKSRefresh time.Duration `mapstructure:"jwks_refresh" doc:"how often JWKS URLs are read again; a removed key is accepted no longer"`
}

// AuthKey is a source of public keys and what tokens signed with them may say.
type AuthKey struct {
	File        string            `mapstructure:"file" doc:"a public key in PEM, a JWK or a JWKS; or else jwks_url"`
	JWKSURL     string            `mapstructure:"jwks_url" doc:"https URL of a JWKS; http on this machine only"`
	Alg         string            `mapstructure:"alg" doc:"EdDSA, ES256 or RS256: the one algorithm of these keys"`
	KID         string            `mapstructure:"kid" doc:"key id of a key without one; in a set, the only one that is taken"`
	Issuer      string            `mapstructure:"issuer" doc:"the iss claim of its tokens"`
	Audience    string            `mapstructure:"audience" doc:"what their aud claim must contain"`
	Scopes      []string          `mapstructure:"scopes" doc:"the scopes that its tokens may have: user, service, admin"`
	ScopeClaim  string            `mapstructure:"scope_claim" doc:"the claim with the scope; empty: all tokens have the one in scopes"`
	ScopeValues map[string]string `mapstructure:"scope_values" doc:"for a scope, the word that the claim has for it instead of its name"`
	UserClaim   string            `mapstructure:"user_claim" doc:"the claim with the user id; empty: sub"`
}

// Log says what is logged.
type Log struct {
	Level  string `mapstructure:"level" doc:"debug, info, warn or error"`
	Format string `mapstructure:"format" doc:"text or json"`
}

// Telemetry says where traces of requests go.
type Telemetry struct {
	OTLPEndpoint string  `mapstructure:"otlp_endpoint" doc:"URL of a collector of traces (OTLP/HTTP), such as http://127.0.0.1:4318; empty: no traces, at no cost"`
	SampleRatio  float64 `mapstructure:"sample_ratio" doc:"share of requests that are traced, above 0 and at most 1; those with a traceparent do as it says"`
}

// Secret is a value that no print, log or error shows.
type Secret string

// String hides the value.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "[redacted]"
}

// GoString hides the value from %#v as well.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides the value from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Reveal returns the value.
func (s Secret) Reveal() string { return string(s) }

// Default returns the configuration of a bare `likectl serve`.
func Default() Config {
	return Config{
		Tier:        1,
		Listen:      "127.0.0.1:8080",
		AdminListen: "127.0.0.1:9090",
		Data:        "likectl-data",
		Stop:        20 * time.Second,
		Items:       Items{Types: map[string]int{"post": 1, "reel": 2, "comment": 3}},
		Postgres:    Postgres{MaxConns: 8, StatementTimeout: 3 * time.Second},
		// Two lanes: while one waits for its flush the other one's statement
		// runs, and the database joins both flushes into one. More lanes only
		// make the batches smaller.
		Write:  Batch{Lanes: 2, MaxBatch: 512, MaxQueue: 8192, Timeout: 5 * time.Second},
		Replay: Batch{Lanes: 1, MaxBatch: 1000, MaxQueue: 16384, Timeout: 30 * time.Second},
		// As writes: a view is answered to somebody who waits. One lane, since
		// tallies may come in larger batches.
		Tally:  Batch{Lanes: 1, MaxBatch: 1000, MaxQueue: 16384, Timeout: 5 * time.Second},
		Events: Events{Retention: 7 * 24 * time.Hour},
		// A month of backups and a week of logs are what many keep; both are to be
		// set to what is kept here.
		Erase: Erase{MaxRate: erase.DefaultPerSecond, LogRetention: 7 * 24 * time.Hour, BackupRetention: 30 * 24 * time.Hour},
		HTTP: HTTP{
			RequestTimeout: 5 * time.Second, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second,
			WriteTimeout: 30 * time.Second, IdleTimeout: 60 * time.Second,
			MaxBody: 1 << 20, MaxHeader: 16 << 10, MaxConnections: 16_384,
			MinVersionWait: 200 * time.Millisecond, Gzip: true, CORS: CORS{Origins: []string{}, MaxAge: 2 * time.Hour},
		},
		// The keys of a bucket: 65,536 users a minute are 1,000 a second, each of
		// whom likes once, about what one database commits; and it is 10 MB.
		Limits: Limits{
			Enabled: true, TrustedProxies: []string{}, MaxKeys: 1 << 16,
			Like: perMinute(100), Unlike: perMinute(100), Save: perMinute(100), Unsave: perMinute(100),
			View: perMinute(600), Share: perMinute(100),
			// Many users share an address: a company's, a carrier's. This one is
			// against a single client that takes all of the service.
			IP: perMinute(60_000), Service: []Limit{},
		},
		Abuse: defaultAbuse(),
		Hot:   Hot{Threshold: 1000},
		Auth: Auth{
			Issuer: "likectl", Audience: "likectl", Leeway: 30 * time.Second, Cache: 50_000,
			Keys: []AuthKey{}, FileRefresh: 5 * time.Second, JWKSRefresh: 5 * time.Minute,
		},
		Log: Log{Level: "info", Format: "text"},
		// A trace is some 1 KB: at 1,000 requests a second this is 50 KB a second.
		Telemetry: Telemetry{SampleRatio: 0.05},

		Visibility: defaultVisibility(),
	}
}

func perMinute(n int) []Limit { return []Limit{{Limit: n, Window: time.Minute}} }
