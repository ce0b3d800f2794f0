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

// MarshalText implements [encoding.TextMarshaler].
func (a Ack) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. A word that [Ack.String]
// does not have is ErrInvalid.
func (a *Ack) UnmarshalText(text []byte) error {
	for _, known := range []Ack{AckCommitted, AckLogged, AckMemory} {
		if known.String() == string(text) {
			*a = known
			return nil
		}
	}
	return Errorf(ErrInvalid, "%q is not a meaning of an acknowledgement", clip(text))
}

// Contract is what a tier promises, as data: it is printed for operators, drives
// the suites that hold the tier to it, and is part of the API's description,
// where clients read it. Durations are nanoseconds there.
type Contract struct {
	// Tier is 1 to 5; 0 is the oracle in memory.
	Tier int `json:"tier"`
	// Name is the architecture in a few words.
	Name string `json:"name"`
	// Ack is the meaning of an acknowledgement.
	Ack Ack `json:"ack"`
	// CountStaleness bounds how old the truth may be that a count shows; 0: a
	// count is the truth at some instant between the read's start and its end.
	CountStaleness time.Duration `json:"count_staleness_ns"`
	// EdgeStaleness is the same bound for Has, Likers and LikedBy.
	EdgeStaleness time.Duration `json:"edge_staleness_ns"`
	// ReadYourWrites: a version token makes later reads include its operation
	// on every instance. Where CountStaleness is 0 that needs no token.
	ReadYourWrites bool `json:"read_your_writes"`
	// ExactChanged: of concurrent equal operations exactly one is Changed.
	ExactChanged bool `json:"exact_changed"`
	// CountEqualsEdges: in every consistent snapshot the count equals the
	// number of liked edges, not only once traffic has stopped. (Tallies have
	// no edges; their counts are never derived again.)
	CountEqualsEdges bool `json:"count_equals_edges"`
	// Losses says for each backend what its loss costs.
	Losses []Loss `json:"losses"`
}

// Loss is what the loss of one backend costs the data and the service.
type Loss struct {
	Backend string `json:"backend"`
	// Away: the backend does not answer for a while.
	Away string `json:"away"`
	// Lost: its data is gone for good.
	Lost string `json:"lost"`
}
