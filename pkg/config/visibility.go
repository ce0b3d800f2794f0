package config

import (
	"fmt"
	"time"

	"likectl/pkg/likes"
	"likectl/pkg/visibility"
)

// Visibility says how who may see an item is found out.
type Visibility struct {
	Cache      time.Duration `mapstructure:"cache" doc:"how long a decision is remembered; so long may another instance take to see a change"`
	MaxEntries int           `mapstructure:"max_entries" doc:"decisions remembered, about 150 bytes each"`
	Authorizer Authorizer    `mapstructure:"authorizer" doc:"a service of yours that decides instead of the tables here"`
}

// Authorizer is an outside service that decides.
type Authorizer struct {
	URL           string        `mapstructure:"url" doc:"https URL, http on this machine only; empty: the tables here decide"`
	Timeout       time.Duration `mapstructure:"timeout" doc:"after which a call is given up and the request answered 503"`
	MaxConcurrent int           `mapstructure:"max_concurrent" doc:"calls at once; more wait, within the timeout"`
	TokenFile     string        `mapstructure:"token_file" doc:"file with a bearer token for the calls; empty: none"`
}

// defaultVisibility decides from the tables here. 65,536 decisions are 10 MB.
func defaultVisibility() Visibility {
	return Visibility{
		Cache: time.Second, MaxEntries: 1 << 16,
		Authorizer: Authorizer{Timeout: 500 * time.Millisecond, MaxConcurrent: 64},
	}
}

// The greatest values: a change must be seen some time, and a decision is a like
// that may be waiting.
const (
	maxVisibilityCache   = time.Minute
	maxVisibilityEntries = 10_000_000
	maxConcurrent        = 10_000
)

// check tells report every key that is wrong.
func (v *Visibility) check(report func(ok bool, key, want string)) {
	const key = "visibility."
	report(v.Cache <= maxVisibilityCache, key+"cache", fmt.Sprintf("want at most %v", maxVisibilityCache))
	report(v.MaxEntries <= maxVisibilityEntries, key+"max_entries", fmt.Sprintf("want at most %d", maxVisibilityEntries))
	a := v.Authorizer
	report(a.MaxConcurrent <= maxConcurrent, key+"authorizer.max_concurrent", fmt.Sprintf("want at most %d", maxConcurrent))
	report(a.URL != "" || a.TokenFile == "", key+"authorizer.token_file", "read only with visibility.authorizer.url")
	if a.URL != "" && a.Timeout > 0 && a.MaxConcurrent > 0 {
		outside := a.Outside(likes.ItemTypes{})
		if err := outside.Check(); err != nil {
			report(false, key+"authorizer", err.Error())
		}
	}
}

// Outside returns the section as the configuration of pkg/visibility.
func (a Authorizer) Outside(types likes.ItemTypes) visibility.AuthorizerConfig {
	return visibility.AuthorizerConfig{
		URL: a.URL, Timeout: a.Timeout, MaxConcurrent: a.MaxConcurrent, TokenFile: a.TokenFile, Types: types,
	}
}
