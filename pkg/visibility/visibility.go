// Package visibility decides who may see an item, and so who may like it, and who
// may see its numbers.
package visibility

import (
	"strconv"

	"likectl/pkg/likes"
)

// Level says for whom an item is meant.
type Level uint8

// The levels.
const (
	// Public: for everyone.
	Public Level = iota + 1
	// Followers: for the owner and those who follow the owner.
	Followers
	// Private: for the owner alone.
	Private
)

// State says whether an item is there at all.
type State uint8

// The states. Neither changes an edge or a stored count: an item that comes back
// has the likes that it had.
const (
	// Live: as its level says.
	Live State = iota + 1
	// Hidden: taken away by moderation, for everyone but the owner's backend.
	Hidden
	// Deleted: as if it did not exist.
	Deleted
)

// Item is what is known about an item besides its likes.
type Item struct {
	Item  likes.Item
	Owner likes.UserID // 0: nobody
	Level Level
	State State
	// HideCounts: how many like it is shown to the owner alone.
	HideCounts bool
}

// Facts are what a decision about one item for one viewer is made from.
type Facts struct {
	// Known is false for an item that was never registered; then of the other
	// fields only Blocked may be set.
	Known      bool
	Owner      likes.UserID
	Level      Level
	State      State
	HideCounts bool
	// Follows: the viewer follows the owner.
	Follows bool
	// Blocked: the viewer is blocked from this item, or the owner has blocked the
	// viewer, or the viewer the owner.
	Blocked bool
}

// names of levels and states, as the API has them.
var (
	levels = [...]string{Public: "public", Followers: "followers", Private: "private"}
	states = [...]string{Live: "live", Hidden: "hidden", Deleted: "deleted"}
)

// String returns the level's name.
func (l Level) String() string { return name(levels[:], int(l), "level") }

// String returns the state's name.
func (s State) String() string { return name(states[:], int(s), "state") }

func name(names []string, i int, kind string) string {
	if i < len(names) && names[i] != "" {
		return names[i]
	}
	return kind + " " + strconv.Itoa(i)
}
