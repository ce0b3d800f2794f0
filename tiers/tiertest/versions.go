package tiertest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"likectl/pkg/likes"
)

// CheckVersions returns an error if one version of a count had two values or,
// where counts are not stale, if a read shows an older version than one that had
// ended before it began.
func CheckVersions(events []Event, staleness time.Duration) error {
	type counter struct {
		edge  likes.Edge // its user is 0
		epoch likes.Epoch
	}
	values := map[counter]map[int64]int64{}
	reads := map[counter][]Event{}
	var errs []error
	for _, r := range events {
		if r.Kind != KindCount {
			continue
		}
		k := counter{r.Edge, r.Version.Epoch}
		if values[k] == nil {
			values[k] = map[int64]int64{}
		}
		reads[k] = append(reads[k], r)
		if r.Beside {
			continue
		}
		if n, ok := values[k][r.Version.N]; ok && n != r.N {
			errs = append(errs, fmt.Errorf("item %d:%d: version %v was %d and %d", r.Edge.Item.Type, r.Edge.Item.ID, r.Version, n, r.N))
		}
		values[k][r.Version.N] = r.N
	}
	if staleness > 0 {
		return joinSome(errs)
	}
	for _, rs := range reads {
		ended := slices.Clone(rs)
		slices.SortFunc(rs, func(a, b Event) int { return cmp.Compare(a.Call, b.Call) })
		slices.SortFunc(ended, func(a, b Event) int { return cmp.Compare(a.Return, b.Return) })
		var newest Event
		for _, r := range rs {
			for ; len(ended) > 0 && ended[0].Return < r.Call; ended = ended[1:] {
				if ended[0].Version.N > newest.Version.N {
					newest = ended[0]
				}
			}
			if r.Version.N < newest.Version.N {
				errs = append(errs, fmt.Errorf("item %d:%d: client %d read version %d after client %d had read version %d",
					r.Edge.Item.Type, r.Edge.Item.ID, r.Client, r.Version.N, newest.Client, newest.Version.N))
			}
		}
	}
	return joinSome(errs)
}
