package auth

import (
	"strings"
	"sync"
)

// cache remembers verified tokens in two generations: a full young one becomes
// the old one, and what the old one still answers moves back into the young one.
// That bounds it to twice its size, keeps what is in use, and needs neither a
// list nor a clock of its own. Only good tokens enter, so nobody without one can
// push others out.
type cache struct {
	size int

	mu    sync.RWMutex
	young map[string]verified
	old   map[string]verified
}

// verified is a token's identity until it expires, in Unix nanoseconds.
type verified struct {
	id      Identity
	expires int64
}

func newCache(size int) *cache {
	return &cache{size: size, young: make(map[string]verified)}
}

// get returns the identity of a remembered token that has not expired.
func (c *cache) get(token string, now int64) (Identity, bool) {
	c.mu.RLock()
	v, ok := c.young[token]
	promote := false
	if !ok {
		v, ok = c.old[token]
		promote = ok
	}
	c.mu.RUnlock()
	if !ok || now >= v.expires {
		return Identity{}, false
	}
	if promote {
		c.put(token, v.id, v.expires)
	}
	return v.id, true
}

// put remembers a copy of the token, which may be part of a whole header.
func (c *cache) put(token string, id Identity, expires int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.young[token]; !ok && len(c.young) >= c.size {
		c.old, c.young = c.young, make(map[string]verified, c.size)
	}
	c.young[strings.Clone(token)] = verified{id: id, expires: expires}
}
