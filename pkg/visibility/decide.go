package visibility

import "likectl/pkg/likes"

// The viewers that are no users.
const (
	// Anonymous is whoever sends no token.
	Anonymous likes.UserID = 0
	// Backend is a backend of the product that asks for no user in particular. It
	// sees what there is: everything that is not deleted, but no hidden count, so
	// that passing an answer on to users shows none.
	Backend likes.UserID = -1
)

// Decision is what a viewer gets of an item.
type Decision struct {
	// Visible: the viewer may see the item, like it, and see who else does.
	Visible bool
	// CountsShown: and its numbers. Never without Visible.
	CountsShown bool
}

// open is the decision where nothing restricts anybody.
var open = Decision{Visible: true, CountsShown: true}

// Decide says what the viewer gets of an item. Of an item without a row it is
// everything, unless items must be registered or the viewer is blocked from it.
func Decide(f Facts, viewer likes.UserID, registered bool) Decision {
	owns := f.Known && viewer > 0 && viewer == f.Owner
	d := Decision{Visible: visible(f, viewer, owns, registered)}
	d.CountsShown = d.Visible && (owns || !f.Known || !f.HideCounts)
	return d
}

func visible(f Facts, viewer likes.UserID, owns, registered bool) bool {
	switch {
	case !f.Known:
		return !registered && (viewer == Backend || !f.Blocked)
	case viewer == Backend:
		return f.State == Live || f.State == Hidden
	case f.State != Live:
		return false
	case owns: // whom nobody can block from what is theirs
		return true
	case f.Blocked:
		return false
	default:
		return f.Level == Public || f.Level == Followers && viewer > 0 && f.Follows
	}
}
