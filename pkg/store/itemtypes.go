package store

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"likectl/pkg/likes"
)

// ItemTypes remembers which number stands for which item type in the rows of a
// store. A type stays registered when its name leaves the configuration, since
// its likes stay too.
type ItemTypes interface {
	// ItemTypes returns the registered types.
	ItemTypes(ctx context.Context) (map[string]likes.ItemType, error)
	// RegisterItemTypes adds those types that are not registered yet. It adds
	// none and returns the error of [NewItemTypes] if they contradict what is
	// registered. Concurrent calls take turns.
	RegisterItemTypes(ctx context.Context, types map[string]likes.ItemType) error
}

// NewItemTypes returns which of the configured types are not registered, or
// ErrInvalid if a name has another number than the registered one, or a number
// another name: the likes of one type would count as those of another.
func NewItemTypes(registered, configured map[string]likes.ItemType) (map[string]likes.ItemType, error) {
	names := make(map[likes.ItemType]string, len(registered))
	for name, n := range registered {
		names[n] = name
	}
	added := make(map[string]likes.ItemType)
	var bad []error
	for _, name := range slices.SortedFunc(maps.Keys(configured), cmp.Compare) {
		n := configured[name]
		was, known := registered[name]
		owner, taken := names[n]
		switch {
		case known && was != n:
			bad = append(bad, likes.Errorf(likes.ErrInvalid, "the item type %s is %d in the configuration and %d in the store: "+
				"its likes so far would be out of sight and other instances would count into them; nothing was changed; set %s: %d again",
				name, n, was, name, was))
		case !known && taken:
			bad = append(bad, likes.Errorf(likes.ErrInvalid, "the item type %s is %d in the configuration, which is %s in the store: "+
				"the likes of both would be mixed; nothing was changed; give %s a number that was never used",
				name, n, owner, name))
		case !known:
			added[name] = n
		}
	}
	return added, errors.Join(bad...)
}
