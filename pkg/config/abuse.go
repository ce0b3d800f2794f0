package config

import (
	"fmt"
	"strings"
	"time"

	"likectl/pkg/abuse"
	"likectl/pkg/limit"
	"likectl/pkg/outside"
)

// Abuse says how fake likes are kept out. Nothing of it is on by default.
type Abuse struct {
	Velocity     Velocity      `mapstructure:"velocity" doc:"how fast likes may come, beside the limits of users"`
	Reputation   Reputation    `mapstructure:"reputation" doc:"who is refused or slowed"`
	Scorer       Scorer        `mapstructure:"scorer" doc:"an HTTP service that is asked about each like"`
	Batch        bool          `mapstructure:"batch" doc:"check the likes of likes:batch too, but for the scorer"`
	DeviceHeader string        `mapstructure:"device_header" doc:"the header that names the client's device"`
	Refresh      time.Duration `mapstructure:"refresh" doc:"how often the files of reputation and scorer are read again"`
}

// Velocity are limits of likes, and of saves apart; each process counts for
// itself and remembers limits.max_keys keys for each.
type Velocity struct {
	UserOwner []Limit `mapstructure:"user_owner" doc:"likes by one user on the items of one owner; empty: not limited"`
	Item      []Limit `mapstructure:"item" doc:"likes of one item by everybody; empty: not limited"`
	IP        []Limit `mapstructure:"ip" doc:"likes from one client address, except with a service token; empty: not limited"`
	Device    []Limit `mapstructure:"device" doc:"likes from one device; empty: not limited"`
}

// Reputation is a list of users, addresses and devices.
type Reputation struct {
	File       string `mapstructure:"file" doc:"lines of user ID, ip NETWORK or device NAME, each with deny or slow; empty: none"`
	SlowFactor int    `mapstructure:"slow_factor" doc:"what velocity limits are divided by for those who are slowed"`
}

// Scorer is an HTTP service that is asked about likes.
type Scorer struct {
	URL         string        `mapstructure:"url" doc:"https URL that is sent a POST; http on this machine only; empty: none"`
	TokenFile   string        `mapstructure:"token_file" doc:"file with the bearer token it is sent; empty: none"`
	Timeout     time.Duration `mapstructure:"timeout" doc:"time for an answer; it is added to the time of a like"`
	OnError     string        `mapstructure:"on_error" doc:"while it does not answer: allow, or refuse with 503"`
	MaxInFlight int           `mapstructure:"max_in_flight" doc:"questions asked at once; more wait for their turn within the timeout"`
}

func defaultAbuse() Abuse {
	return Abuse{
		Velocity:     Velocity{UserOwner: []Limit{}, Item: []Limit{}, IP: []Limit{}, Device: []Limit{}},
		Reputation:   Reputation{SlowFactor: 10},
		Scorer:       Scorer{Timeout: 50 * time.Millisecond, OnError: "allow", MaxInFlight: 64},
		DeviceHeader: "Like-Device", Refresh: 5 * time.Second,
	}
}

// maxInFlight connections to an outside service are many times what one process can use.
const maxInFlight = 10_000

// check tells report every key that is wrong; request is the time of a request.
func (a *Abuse) check(report func(ok bool, key, want string), request time.Duration) {
	for key, list := range map[string][]Limit{
		"user_owner": a.Velocity.UserOwner, "item": a.Velocity.Item, "ip": a.Velocity.IP, "device": a.Velocity.Device,
	} {
		if len(list) == 0 {
			continue // not limited, which the key says
		}
		if err := limit.Check(limits(list)); err != nil {
			report(false, "abuse.velocity."+key, err.Error())
		}
	}
	report(isHeaderName(a.DeviceHeader), "abuse.device_header", "want the name of a header, such as Like-Device")
	report(a.Refresh <= maxRefresh, "abuse.refresh", fmt.Sprintf("want at most %v", maxRefresh))
	report(a.Reputation.SlowFactor != 1, "abuse.reputation.slow_factor", "want at least 2, since 1 slows nobody")
	report(oneOf(a.Scorer.OnError, "allow", "refuse"), "abuse.scorer.on_error", "want allow or refuse")
	report(a.Scorer.Timeout < request, "abuse.scorer.timeout", "want less than http.request_timeout")
	report(a.Scorer.MaxInFlight <= maxInFlight, "abuse.scorer.max_in_flight", fmt.Sprintf("want at most %d", maxInFlight))
	report(a.Scorer.TokenFile == "" || a.Scorer.URL != "", "abuse.scorer.token_file", "is read only with abuse.scorer.url")
	if a.Scorer.URL != "" && a.Scorer.Timeout > 0 && a.Scorer.MaxInFlight > 0 { // those two have been reported
		s := a.scorer()
		if err := s.Check(); err != nil {
			report(false, "abuse.scorer", err.Error())
		}
	}
}

func (a *Abuse) scorer() abuse.Scorer {
	s := a.Scorer
	return abuse.Scorer{
		Endpoint:   outside.Endpoint{URL: s.URL, TokenFile: s.TokenFile, Timeout: s.Timeout, MaxInFlight: s.MaxInFlight},
		FailClosed: s.OnError == "refuse",
	}
}

// Guard returns the section as the configuration of pkg/abuse, without types,
// hooks and log.
func (c Config) Guard() abuse.Config {
	a := c.Abuse
	return abuse.Config{
		Velocity: abuse.Velocity{
			UserOwner: limits(a.Velocity.UserOwner), Item: limits(a.Velocity.Item), IP: limits(a.Velocity.IP), Device: limits(a.Velocity.Device),
			MaxKeys: c.Limits.MaxKeys,
		},
		List: a.Reputation.File, SlowFactor: a.Reputation.SlowFactor, Scorer: a.scorer(), Batch: a.Batch, Refresh: a.Refresh,
	}
}

// isHeaderName says whether a header can have the name (RFC 9110, 5.6.2), of
// letters, digits and dashes: others do not survive all proxies.
func isHeaderName(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"
	return name != "" && strings.Trim(name, letters) == ""
}
