package httpapi

import "strings"

// fields is a set of the members that request bodies have.
type fields uint32

// The members, in the order in which a missing one is named.
const (
	fItemID fields = 1 << iota
	fItemType
	fUserID
	fAction
	fCounter
	fItems
	fItemIDs
	fCounterTypes
	fOps
	fEventID
	fOwnerID
	fVisibility
	fState
	fCounts
	fBlockerID
	fBlockedID
	fFollowerID
	fFolloweeID
)

// fieldOf returns the member of that name, or 0. It does not allocate.
func fieldOf(name []byte) fields {
	switch string(name) {
	case "item_id":
		return fItemID
	case "item_type":
		return fItemType
	case "user_id":
		return fUserID
	case "action":
		return fAction
	case "counter":
		return fCounter
	case "items":
		return fItems
	case "item_ids":
		return fItemIDs
	case "counter_types":
		return fCounterTypes
	case "ops":
		return fOps
	case "event_id":
		return fEventID
	case "owner_id":
		return fOwnerID
	case "visibility":
		return fVisibility
	case "state":
		return fState
	case "counts":
		return fCounts
	case "blocker_id":
		return fBlockerID
	case "blocked_id":
		return fBlockedID
	case "follower_id":
		return fFollowerID
	case "followee_id":
		return fFolloweeID
	default:
		return 0
	}
}

// String returns the members' names as a list.
func (f fields) String() string {
	switch f {
	case fItemID:
		return "item_id"
	case fItemType:
		return "item_type"
	case fUserID:
		return "user_id"
	case fAction:
		return "action"
	case fCounter:
		return "counter"
	case fItems:
		return "items"
	case fItemIDs:
		return "item_ids"
	case fCounterTypes:
		return "counter_types"
	case fOps:
		return "ops"
	case fEventID:
		return "event_id"
	case fOwnerID:
		return "owner_id"
	case fVisibility:
		return "visibility"
	case fState:
		return "state"
	case fCounts:
		return "counts"
	case fBlockerID:
		return "blocker_id"
	case fBlockedID:
		return "blocked_id"
	case fFollowerID:
		return "follower_id"
	case fFolloweeID:
		return "followee_id"
	}
	var names []string
	for one := fields(1); one <= fFolloweeID; one <<= 1 {
		if f&one != 0 {
			names = append(names, one.String())
		}
	}
	return strings.Join(names, ", ")
}
