package abuse

import (
	"encoding/binary"

	"likectl/pkg/likes"
	"likectl/pkg/limit"
)

// Velocity are limits of likes; an empty list limits nothing.
type Velocity struct {
	// UserOwner is of a user on the items of one owner.
	UserOwner []limit.Limit
	// Item is of everybody on one item.
	Item []limit.Limit
	// IP is from one client address, IPv6 by its /64.
	IP []limit.Limit
	// Device is from one device.
	Device []limit.Limit
	// MaxKeys is how many keys each limit remembers: see limit.New.
	MaxKeys int
}

func (v Velocity) empty() bool {
	return len(v.UserOwner)+len(v.Item)+len(v.IP)+len(v.Device) == 0
}

// bucket is a velocity limit with what its keys have used. Who is slowed takes
// from both limiters: a slowed like counts for everybody's limit of an item too.
type bucket struct {
	name      string
	all, slow *limit.Limiter
}

// newBucket returns nil without limits.
func newBucket(name string, maxKeys, factor int, limits []limit.Limit) (*bucket, error) {
	if len(limits) == 0 {
		return nil, nil //nolint:nilnil // no limit is no error
	}
	all, err := limit.New(name, maxKeys, limits...)
	if err != nil {
		return nil, err
	}
	lower := make([]limit.Limit, len(limits))
	for i, l := range limits {
		lower[i] = limit.Limit{Max: max(1, l.Max/factor), Window: l.Window}
	}
	slow, err := limit.New(name, maxKeys, lower...)
	return &bucket{name, all, slow}, err
}

// buckets are all velocity limits; nil ones limit nothing.
type buckets struct{ userOwner, item, ip, device *bucket }

func newBuckets(v Velocity, factor int) (b buckets, err error) {
	for _, x := range []struct {
		name   string
		to     **bucket
		limits []limit.Limit
	}{
		{reasonUserOwner, &b.userOwner, v.UserOwner},
		{reasonItem, &b.item, v.Item},
		{reasonIP, &b.ip, v.IP},
		{reasonDevice, &b.device, v.Device},
	} {
		if *x.to, err = newBucket(x.name, v.MaxKeys, factor, x.limits); err != nil {
			return b, err
		}
	}
	return b, nil
}

// key is a key of one limiter.
type key struct {
	name    string
	limiter *limit.Limiter
	key     string
}

// keys returns what an attempt takes from.
func (b *buckets) keys(a Attempt, owner likes.UserID, slow bool) []key {
	const most = 8 // four limits, and as many for who is slowed
	keys := make([]key, 0, most)
	counter := byte(a.Edge.Counter) // likes and saves are counted apart
	add := func(b *bucket, text []byte) {
		k := key{b.name, b.all, string(text)}
		if keys = append(keys, k); slow {
			k.limiter = b.slow
			keys = append(keys, k)
		}
	}
	var buf [64]byte
	begin := append(buf[:0], counter)
	be := binary.BigEndian
	if b.userOwner != nil && owner != 0 {
		add(b.userOwner, be.AppendUint64(be.AppendUint64(begin, uint64(a.Edge.User)), uint64(owner)))
	}
	if b.item != nil {
		add(b.item, be.AppendUint64(be.AppendUint16(begin, uint16(a.Edge.Item.Type)), uint64(a.Edge.Item.ID)))
	}
	if b.ip != nil && a.Network != "" {
		add(b.ip, append(begin, a.Network...))
	}
	if b.device != nil && a.Device != (Device{}) {
		add(b.device, append(begin, a.Device[:]...))
	}
	return keys
}
