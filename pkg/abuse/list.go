package abuse

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"

	"github.com/gaissmai/bart"

	"likectl/pkg/likes"
)

// maxList bounds the file of a list, in bytes: about 700,000 lines of users, and
// some 60 MB of memory.
const maxList = 16 << 20

// standing is what a list says of somebody, the worse the greater.
type standing uint8

const (
	good standing = iota
	slowed
	denied
)

// list is a reputation list. The zero list knows nobody.
type list struct {
	users   map[likes.UserID]standing
	devices map[Device]standing
	nets    bart.Table[standing]
}

// size is the number of entries.
func (l *list) size() int { return len(l.users) + len(l.devices) + l.nets.Size() }

// of returns the worst of what is said of an attempt's user, address and device.
// Of several networks around an address the smallest counts.
func (l *list) of(a Attempt) standing {
	s := max(l.users[a.Edge.User], l.devices[a.Device])
	if a.Addr.IsValid() {
		net, _ := l.nets.Lookup(a.Addr)
		s = max(s, net)
	}
	return s
}

// parseList reads a list, or returns ErrInvalid that names the first line that is
// wrong. A line holds what, which and how, such as "user 42 deny"; empty lines
// and those that begin with # say nothing.
func parseList(doc []byte) (*list, error) {
	l := &list{users: make(map[likes.UserID]standing), devices: make(map[Device]standing)}
	n := 0
	for line := range bytes.Lines(doc) {
		n++
		fields := strings.Fields(string(line))
		if len(fields) == 0 || fields[0][0] == '#' {
			continue
		}
		if err := l.add(fields); err != nil {
			return nil, likes.Errorf(likes.ErrInvalid, "line %d: %w", n, err)
		}
	}
	return l, nil
}

func (l *list) add(fields []string) error {
	const parts = 3
	if len(fields) != parts {
		return fmt.Errorf("%d words, want 3, such as: user 42 deny", len(fields))
	}
	what, which := fields[0], fields[1]
	var s standing
	switch fields[2] {
	case "deny":
		s = denied
	case "slow":
		s = slowed
	default:
		return fmt.Errorf("%.40q, want deny or slow", fields[2])
	}
	switch what {
	case "user":
		id, err := likes.ParseID(which)
		if err != nil {
			return err
		}
		return put(l.users, likes.UserID(id), s)
	case "device":
		d, err := listedDevice(which)
		if err != nil {
			return fmt.Errorf("device: %w", err)
		}
		return put(l.devices, d, s)
	case "ip":
		net, err := parseNet(which)
		if err != nil {
			return err
		}
		if _, twice := l.nets.Get(net); twice {
			return errTwice
		}
		l.nets.Insert(net, s)
		return nil
	default:
		return fmt.Errorf("%.40q, want user, ip or device", what)
	}
}

var errTwice = likes.Errorf(likes.ErrInvalid, "stands in an earlier line too")

func put[K comparable](m map[K]standing, key K, s standing) error {
	if _, twice := m[key]; twice {
		return errTwice
	}
	m[key] = s
	return nil
}

// parseNet reads an address or a network in its one form: client addresses are
// compared as IPv4 where they can be.
func parseNet(text string) (netip.Prefix, error) {
	net, err := netip.ParsePrefix(text)
	if addr, bad := netip.ParseAddr(text); bad == nil && addr.Zone() == "" {
		net, err = netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	switch {
	case err != nil:
		return net, fmt.Errorf("ip: %.60q is no address and no network, such as 192.0.2.0/24", text)
	case net.Bits() == 0:
		return net, fmt.Errorf("ip: %s is everybody", net)
	case net.Addr().Is4In6():
		return net, fmt.Errorf("ip: %s: write it as IPv4", net)
	case net != net.Masked():
		return net, fmt.Errorf("ip: %s has bits outside its mask, want %s", net, net.Masked())
	}
	return net, nil
}
