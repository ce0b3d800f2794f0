package likes

// The checks that every service makes before it asks a store. They live here so
// that all tiers and the oracle refuse the same calls with the same words.

// CheckApply returns ErrInvalid if the number of mutations is not 1 to MaxApply.
func CheckApply(n int) error {
	if n < 1 || n > MaxApply {
		return Errorf(ErrInvalid, "%d mutations in one call, want 1 to %d", n, MaxApply)
	}
	return nil
}

// CheckCounts returns ErrInvalid if there is no such counter, the number of
// items is not 1 to MaxRead, or an item is malformed.
func CheckCounts(c Counter, items []Item) error {
	if !c.IsSet() && !c.IsTally() {
		return Errorf(ErrInvalid, "there is no counter %d", int(c))
	}
	return checkItems(items)
}

// CheckHas returns ErrInvalid if the counter has no edges, the user id is not
// positive, the number of items is not 1 to MaxRead, or an item is malformed.
func CheckHas(c Counter, u UserID, items []Item) error {
	if err := CheckSet(c); err != nil {
		return err
	}
	if err := CheckUser(u); err != nil {
		return err
	}
	return checkItems(items)
}

func checkItems(items []Item) error {
	if n := len(items); n < 1 || n > MaxRead {
		return Errorf(ErrInvalid, "%d items in one call, want 1 to %d", n, MaxRead)
	}
	for i, item := range items {
		if err := item.Validate(); err != nil {
			return Errorf(ErrInvalid, "items[%d]: %w", i, err)
		}
	}
	return nil
}

// CheckUser returns ErrInvalid if the user id is not positive.
func CheckUser(u UserID) error {
	if u <= 0 {
		return Errorf(ErrInvalid, "user_id %d is not a positive integer", u)
	}
	return nil
}

// CheckPage returns ErrInvalid if the counter keeps no edges or the limit is
// not 1 to MaxPage.
func CheckPage(c Counter, limit int) error {
	if err := CheckSet(c); err != nil {
		return err
	}
	if limit < 1 || limit > MaxPage {
		return Errorf(ErrInvalid, "limit %d, want 1 to %d", limit, MaxPage)
	}
	return nil
}

// CheckSet returns ErrInvalid unless the counter is derived from edges.
func CheckSet(c Counter) error {
	switch {
	case c.IsSet():
		return nil
	case c.IsTally():
		return Errorf(ErrInvalid, "%v is not a set counter but a tally: a sum of events, without users or edges; want likes or saves", c)
	default:
		return Errorf(ErrInvalid, "counter %d is not a set counter: there is none of that number", int(c))
	}
}
