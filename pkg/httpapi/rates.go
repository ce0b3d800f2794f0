package httpapi

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"likectl/pkg/auth"
	"likectl/pkg/likes"
	"likectl/pkg/limit"
)

// Rates bound how often somebody may call. A nil limiter limits nothing.
type Rates struct {
	// IP is taken from by every request of a client address that does not carry
	// a good service token, bad tokens included; Service by every other one, for
	// the token's subject.
	IP, Service *limit.Limiter
	// The rest are taken from by calls of user tokens that are well-formed, just
	// before the service is asked. Unlikes have a limiter of their own, so that a
	// like can always be taken back.
	Like, Unlike, Save, Unsave, Share *limit.Limiter
	// View is per user too, and per client address without a token.
	View *limit.Limiter

	// Proxies are those whose X-Forwarded-For is believed.
	Proxies []netip.Prefix
	// Refused is told of every refused call, if set.
	Refused func(bucket string)
}

// of returns the limiter of a user's mutations.
func (r *Rates) of(counter likes.Counter, op likes.Op) *limit.Limiter {
	switch {
	case counter == likes.Likes && op == likes.Set:
		return r.Like
	case counter == likes.Likes:
		return r.Unlike
	case counter == likes.Saves && op == likes.Set:
		return r.Save
	case counter == likes.Saves:
		return r.Unsave
	case counter == likes.Views:
		return r.View
	default:
		return r.Share
	}
}

// takeRequest takes a request from what its caller may ask of any route.
func (c *call) takeRequest(ctx context.Context) error {
	rates := &c.api.cfg.Rates
	switch {
	case c.caller.Scope >= auth.Service:
		return c.take(ctx, rates.Service, "subject", userKey(c.caller.User))
	case rates.IP != nil:
		return c.take(ctx, rates.IP, "address", addrKey(c.client()))
	}
	return nil
}

// takeMutation takes a user's mutation. What a service does for its users is not
// limited by user: it answers for them.
func (c *call) takeMutation(ctx context.Context, m likes.Mutation) error {
	l := c.api.cfg.Rates.of(m.Edge.Counter, m.Op)
	switch {
	case l == nil, c.caller.Scope >= auth.Service:
		return nil
	case c.caller == auth.Identity{}:
		return c.take(ctx, l, "address", addrKey(c.client()))
	default:
		return c.take(ctx, l, "user", userKey(c.caller.User))
	}
}

// take takes one call of a key. What is left goes into the answer's headers.
func (c *call) take(ctx context.Context, l *limit.Limiter, whose, key string) error {
	if l == nil {
		return nil
	}
	d, err := l.Take(ctx, key)
	if err != nil {
		return fmt.Errorf("limit %s: %w", l.Name(), err)
	}
	c.taken = append(c.taken, d)
	if d.Allowed {
		return nil
	}
	if refused := c.api.cfg.Rates.Refused; refused != nil {
		refused(l.Name())
	}
	wait := limit.Seconds(d.RetryAfter)
	return &problemError{kind: errRate, retry: wait, detail: fmt.Sprintf(
		"the limit %s of this %s is used up; nothing was applied; try again in %d s", l.Name(), whose, wait)}
}

// rateHeaders tells the client how it stands. Answers that shared caches keep say
// nothing: it would be told to others.
func (c *call) rateHeaders(h http.Header) {
	if len(c.taken) == 0 || strings.HasPrefix(c.cache[0], "public") {
		return
	}
	policy := c.taken[0].Policy()
	status := c.taken[0].AppendStatus(make([]byte, 0, 64))
	for i := range c.taken[1:] {
		d := &c.taken[1+i]
		policy += ", " + d.Policy()
		status = d.AppendStatus(append(status, ", "...))
	}
	h["Ratelimit-Policy"], h["Ratelimit"] = []string{policy}, []string{string(status)}
}

// userKey and addrKey are keys of limiters: 8 bytes of a user or a network of
// IPv6, 4 of an address of IPv4.
func userKey(u likes.UserID) string {
	return string(binary.BigEndian.AppendUint64(make([]byte, 0, 8), uint64(u)))
}

// addrKey cuts IPv6 to its /64, which is what one customer is given (RFC 6177):
// its addresses are as many as it likes. What has no address has one key together.
func addrKey(a netip.Addr) string {
	switch {
	case a.Is4():
		b := a.As4()
		return string(b[:])
	case a.Is6():
		b := a.As16()
		return string(b[:8])
	default:
		return ""
	}
}

// warnOfProxy says once that a proxy may be missing from the configuration.
func (c *call) warnOfProxy(peer netip.Addr) {
	if len(c.r.Header["X-Forwarded-For"]) == 0 || !peer.IsPrivate() && !peer.IsLoopback() {
		return
	}
	c.api.proxy.Do(func() {
		c.api.cfg.Logger.Warn("X-Forwarded-For is not believed: all clients of this peer share the limits of one address; if it is a proxy of yours, add it to limits.trusted_proxies",
			"peer", peer.String(), "request_id", c.id)
	})
}

// client returns the address of the client: the connection's, and behind proxies
// that are trusted the last one in X-Forwarded-For that is not a trusted proxy.
// What stands before it the client can have written.
func (c *call) client() netip.Addr {
	peer := parseAddr(c.r.RemoteAddr)
	proxies := c.api.cfg.Rates.Proxies
	if !within(proxies, peer) {
		c.warnOfProxy(peer)
		return peer
	}
	lines := c.r.Header["X-Forwarded-For"]
	for i := len(lines) - 1; i >= 0; i-- {
		for rest, more := lines[i], true; more; {
			var last string
			rest, last, more = cutLast(rest)
			addr := parseAddr(last)
			if !addr.IsValid() {
				return peer // the last proxy that spoke is known, who called it is not
			}
			if peer = addr; !within(proxies, peer) {
				return peer
			}
		}
	}
	return peer
}

// cutLast splits a list at its last comma.
func cutLast(list string) (rest, last string, more bool) {
	if i := strings.LastIndexByte(list, ','); i >= 0 {
		return list[:i], strings.TrimSpace(list[i+1:]), true
	}
	return "", strings.TrimSpace(list), false
}

// parseAddr reads an address with or without a port; IPv4 in IPv6 becomes IPv4.
func parseAddr(text string) netip.Addr {
	if a, err := netip.ParseAddr(text); err == nil {
		return a.Unmap().WithZone("")
	}
	if a, err := netip.ParseAddrPort(text); err == nil {
		return a.Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

func within(networks []netip.Prefix, a netip.Addr) bool {
	for _, n := range networks {
		if n.Contains(a) {
			return true
		}
	}
	return false
}
