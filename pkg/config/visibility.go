package config

import (
	"fmt"
	"time"

	"likectl/pkg/outside"
)

// Visibility says how who may see an item is found out.
type Visibility struct {
	Cache      time.Duration `mapstructure:"cache" doc:"how long a decision is remembered; so long may another instance take to see a change"`
	MaxEntries int           `mapstructure:"max_entries" doc:"decisions remembered, about 150 bytes each"`
	Authorizer Authorizer    `mapstructure:"authorizer" doc:"a service of yours that decides instead of the tables here"`
}

// Authorizer is an outside service that decides.
type Authorizer struct {
	URL         string        `mapstructure:"url" doc:"https URL, http on this machine only; empty: the tables here decide"`
	Timeout     time.Duration `mapstructure:"timeout" doc:"after which a call is given up and the request answered 503"`
	MaxInFlight int           `mapstructure:"max_in_flight" doc:"calls at once; more wait, within the timeout"`
	TokenFile   string        `mapstructure:"token_file" doc:"file with a bearer token for the calls; empty: none"`
}

// defaultVisibility decides from the tables here. 65,536 decisions are 10 MB.
func defaultVisibility() Visibility {
	return Visibility{
		Cache: time.Second, MaxEntries: 1 << 16,
		Authorizer: Authorizer{Timeout: 500 * time.Millisecond, MaxInFlight: 64},
	}
}

// The greatest values: a change must be seen some time, and a decision is a like
// that may be waiting.
const (
	maxVisibilityCache   = time.Minute
	maxVisibilityEntries = 10_000_000
)

// check tells report every key that is wrong; request is the time of a request.
func (v *Visibility) check(report func(ok bool, key, want string), request time.Duration) {
	const key = "visibility."
	report(v.Cache <= maxVisibilityCache, key+"cache", fmt.Sprintf("want at most %v", maxVisibilityCache))
	report(v.MaxEntries <= maxVisibilityEntries, key+"max_entries", fmt.Sprintf("want at most %d", maxVisibilityEntries))
	a := v.Authorizer
	report(a.URL == "" || a.Timeout < request, key+"authorizer.timeout", "want less than http.request_timeout")
	report(a.MaxInFlight <= maxInFlight, key+"authorizer.max_in_flight", fmt.Sprintf("want at most %d", maxInFlight))
	report(a.URL != "" || a.TokenFile == "", key+"authorizer.token_file", "read only with visibility.authorizer.url")
	if a.URL != "" && a.Timeout > 0 && a.MaxInFlight > 0 {
		if err := a.Endpoint().Check(); err != nil {
			report(false, key+"authorizer", err.Error())
		}
	}
}

// Endpoint returns the section as where the service is.
func (a Authorizer) Endpoint() outside.Endpoint {
	return outside.Endpoint{URL: a.URL, TokenFile: a.TokenFile, Timeout: a.Timeout, MaxInFlight: a.MaxInFlight}
}
