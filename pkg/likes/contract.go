package likes

import (
	"strconv"
	"time"
)

// Ack says what has happened when a mutation is answered without an error.
type Ack uint8

// The meanings of an acknowledgement.
const (
	// AckCommitted: edge and count are committed and flushed to disk.
	AckCommitted Ack = iota + 1
	// AckLogged: the operation is in a replicated log; edge and count follow.
	AckLogged
	// AckMemory: held in memory only; a crash loses it.
	AckMemory
)

// String returns the acknowledgement's meaning in a word.
func (a Ack) String() string {
	switch a {
	case AckCommitted:
		return "committed"
	case AckLogged:
		return "logged"
	case AckMemory:
		return "memory"
	default:
		return "ack " + strconv.Itoa(int(a))
	}
}

// Contract is what a tier promises, as data: it is printed for operators and
// drives the suites that hold the tier to it.
type Contract struct {
	// Tier is 1 to 5; 0 is the oracle in memory.
	Tier int
	// Name is the architecture in a few words.
	Name string
	// Ack is the meaning of an acknowledgement.
	Ack Ack
	// CountStaleness bounds how old the truth may be that a count shows; 0: a
	// count is the truth at some instant between the read's start and its end.
	CountStaleness time.Duration
	// EdgeStaleness is the same bound for Has, Likers and LikedBy.
	EdgeStaleness time.Duration
	// ReadYourWrites: a version token makes later reads include its operation
	// on every instance. Where CountStaleness is 0 that needs no token.
	ReadYourWrites bool
	// ExactChanged: of concurrent equal operations exactly one is Changed.
	ExactChanged bool
	// CountEqualsEdges: in every consistent snapshot the count equals the
	// number of liked edges, not only once traffic has stopped. (Tallies have
	// no edges; their counts are never derived again.)
	CountEqualsEdges bool
	// Losses says for each backend what its loss costs.
	Losses []Loss
}

// Loss is what the loss of one backend costs the data and the service.
type Loss struct {
	Backend string
	// Away: the backend does not answer for a while.
	Away string
	// Lost: its data is gone for good.
	Lost string
}
