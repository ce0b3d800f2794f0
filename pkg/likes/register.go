package likes

import "time"

// Register is the stored state of an edge. The zero Register is an edge that no
// operation has ever touched.
type Register struct {
	Liked bool
	Clock Clock
	// LikedAt is when the present like began; of no meaning while not liked.
	LikedAt time.Time
}

// The two kinds of writes are never mixed up, because each would be wrong as
// the other: an issued operation comes from a client that waits for the answer,
// so it must take effect even where a clock runs behind; a replayed one has
// happened already somewhere, so it must not undo what came after it.

// Issue returns the register after a client's operation, and whether it changed
// the edge. The operation always wins: its clock becomes at least the next after
// the stored one, also when it changes nothing, since a later replay of an older
// operation must lose against the repeat too.
func (r Register) Issue(liked bool, clock Clock, likedAt time.Time) (Register, bool) {
	if clock < r.Clock.Next() && r.Clock != 0 {
		clock = r.Clock.Next()
	}
	if r.Liked && liked {
		likedAt = r.LikedAt
	}
	return Register{Liked: liked, Clock: clock, LikedAt: likedAt}, r.Liked != liked
}

// Replay returns the register after an operation with a fixed clock, and whether
// the operation was newer than what is stored. Of equal clocks the unlike wins,
// as it does in Cassandra: any tie rule would do that does not depend on the
// order of arrival, and one that every tier's store can keep is the one to take.
func (r Register) Replay(liked bool, clock Clock, likedAt time.Time) (Register, bool) {
	if clock < r.Clock || clock == r.Clock && (liked || !r.Liked) {
		return r, false
	}
	return Register{Liked: liked, Clock: clock, LikedAt: likedAt}, true
}

// Union returns the register of an edge that takes over another one, when its
// user takes over what another user has: liked if either was, since the earlier
// of the two. The clock is the greater one, and a microsecond later if the union
// differs from the register that had it: what a replay finds under one clock is
// always the same. Of equal clocks the unlike counts as the newer.
func (r Register) Union(o Register) Register {
	newer, older := r, o
	if o.Clock > r.Clock || o.Clock == r.Clock && !o.Liked {
		newer, older = o, r
	}
	if !older.Liked || newer.Liked && !older.LikedAt.Before(newer.LikedAt) {
		return newer
	}
	return Register{Liked: true, Clock: newer.Clock.Next(), LikedAt: older.LikedAt}
}
