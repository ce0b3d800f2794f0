package config

import (
	"net/netip"
	"strings"

	"likectl/pkg/likes"
	"likectl/pkg/limit"
)

// bucket is one list of limits with its name.
type bucket struct {
	name   string
	limits *[]Limit
}

func (l *Limits) buckets() []bucket {
	return []bucket{
		{"like", &l.Like},
		{"unlike", &l.Unlike},
		{"save", &l.Save},
		{"unsave", &l.Unsave},
		{"view", &l.View},
		{"share", &l.Share},
		{"ip", &l.IP},
		{"service", &l.Service},
	}
}

// check tells report every key that is wrong. They are wrong while limits are
// switched off, too: a mistake must not wait for the switch.
func (l *Limits) check(report func(ok bool, key, want string)) {
	for _, b := range l.buckets() {
		if b.name == "service" && len(*b.limits) == 0 {
			continue // not limited, which the key says
		}
		if err := limit.Check(limits(*b.limits)); err != nil {
			report(false, "limits."+b.name, err.Error())
		}
	}
	if _, err := l.Proxies(); err != nil {
		report(false, "limits.trusted_proxies", err.Error())
	}
}

// Buckets returns the limits by the name of their bucket, service only if it has
// any.
func (l *Limits) Buckets() map[string][]limit.Limit {
	buckets := make(map[string][]limit.Limit)
	for _, b := range l.buckets() {
		if len(*b.limits) > 0 {
			buckets[b.name] = limits(*b.limits)
		}
	}
	return buckets
}

func limits(list []Limit) []limit.Limit {
	out := make([]limit.Limit, len(list))
	for i, l := range list {
		out[i] = limit.Limit{Max: l.Limit, Window: l.Window}
	}
	return out
}

// Proxies returns trusted_proxies as networks, or ErrInvalid that names the entry.
func (l *Limits) Proxies() ([]netip.Prefix, error) {
	proxies := make([]netip.Prefix, 0, len(l.TrustedProxies))
	for i, text := range l.TrustedProxies {
		if !strings.Contains(text, "/") {
			if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
				proxies = append(proxies, netip.PrefixFrom(addr, addr.BitLen()))
				continue
			}
		}
		p, err := netip.ParsePrefix(text)
		if err != nil || p.Bits() == 0 {
			return nil, likes.Errorf(likes.ErrInvalid, "limits.trusted_proxies[%d]: %q: want an address or a network, such as 10.0.0.0/8", i, text)
		}
		proxies = append(proxies, p.Masked())
	}
	return proxies, nil
}
