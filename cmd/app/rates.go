package app

import (
	"likectl/pkg/config"
	"likectl/pkg/httpapi"
	"likectl/pkg/limit"
	"likectl/pkg/telemetry"
)

// rates are the limits of the configuration, none if they are switched off.
func rates(cfg config.Limits, metrics *telemetry.Metrics) (httpapi.Rates, error) {
	proxies, err := cfg.Proxies()
	if err != nil {
		return httpapi.Rates{}, err
	}
	if !cfg.Enabled {
		return httpapi.Rates{Proxies: proxies}, nil // others ask for the client's address too
	}
	limiters := make(map[string]*limit.Limiter)
	for name, limits := range cfg.Buckets() {
		if limiters[name], err = limit.New(name, cfg.MaxKeys, limits...); err != nil {
			return httpapi.Rates{}, err
		}
		metrics.Bucket(name)
	}
	return httpapi.Rates{
		IP: limiters["ip"], Service: limiters["service"],
		Like: limiters["like"], Unlike: limiters["unlike"], Save: limiters["save"], Unsave: limiters["unsave"],
		View: limiters["view"], Share: limiters["share"],
		Proxies: proxies, Refused: metrics.RateLimited,
	}, nil
}
