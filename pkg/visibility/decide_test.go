package visibility

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

// Every combination of facts, for every kind of viewer, against the rules said in
// another way: as a list of who is in.
func TestDecide_EveryCombination(t *testing.T) {
	const owner, other = likes.UserID(7), likes.UserID(9)
	n := 0
	for _, state := range []State{Live, Hidden, Deleted} {
		for _, level := range []Level{Public, Followers, Private} {
			for _, viewer := range []likes.UserID{Anonymous, Backend, owner, other} {
				for bits := range 32 {
					bit := func(i int) bool { return bits>>i&1 == 1 }
					f := Facts{Known: true, Owner: owner, Level: level, State: state, HideCounts: bit(0), Follows: bit(1), Blocked: bit(2)}
					registered := bit(3)
					if bit(4) {
						f.Owner = 0
					}
					owns := viewer == owner && f.Owner == owner
					in := map[Level]bool{
						Public:    true,
						Followers: owns || f.Follows && viewer > 0,
						Private:   owns,
					}[level] && (owns || !f.Blocked)
					want := state == Live && in
					if viewer == Backend {
						want = state != Deleted
					}
					got := Decide(f, viewer, registered)
					name := fmt.Sprintf("%+v to %d", f, viewer)
					require.Equal(t, want, got.Visible, name)
					require.Equal(t, want && (owns || !f.HideCounts), got.CountsShown, name)
					n++
				}
			}
		}
	}
	require.Equal(t, 3*3*4*32, n)
}

func TestDecide_AnItemWithoutARow(t *testing.T) {
	for _, row := range []struct {
		viewer              likes.UserID
		blocked, registered bool
		want                bool
	}{
		{Anonymous, false, false, true},
		{9, false, false, true},
		{9, true, false, false}, // blocked from an item that nobody registered
		{Backend, false, false, true},
		{Anonymous, false, true, false},
		{9, false, true, false},
		{Backend, false, true, false}, // it does not exist
	} {
		got := Decide(Facts{Blocked: row.blocked}, row.viewer, row.registered)
		require.Equal(t, Decision{Visible: row.want, CountsShown: row.want}, got, "%+v", row)
	}
}

// What is none of the states or levels is not for anybody.
func TestDecide_AValueThatThereIsNotIsRefused(t *testing.T) {
	for _, f := range []Facts{{Known: true, Level: Public}, {Known: true, State: Live}, {Known: true, State: 9, Level: Public}, {Known: true, State: Live, Level: 9}} {
		for _, viewer := range []likes.UserID{Anonymous, 9} {
			require.Equal(t, Decision{}, Decide(f, viewer, false), "%+v", f)
		}
	}
	require.Equal(t, Decision{}, Decide(Facts{Known: true, Level: Public}, Backend, false))
}
