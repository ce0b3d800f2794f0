// Package storetest is the suite that every store with edges and counters in
// one transaction passes. It holds a store to the sentences of the ports in
// pkg/store, once alone against a model and once under concurrent writers.
package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

// Store is a store under test with raw access to its tables. The suite tampers
// through it as an operator's mistake would, in SQL that every store
// understands, on the tables
//
//	edges(counter, item_type, item_id, user_id, clock, liked, …)
//	counters(counter, item_type, item_id, count, version)
//	tally_events(event_id, counter, item_type, item_id, at)
//	items(item_type, item_id, owner_id, level, state, hide_counts)
//	blocks(blocker_id, blocked_id)
//	item_blocks(item_type, item_id, blocked_id)
//	follows(follower_id, followee_id)
type Store interface {
	store.Edges
	store.Tallies
	store.Auditor
	store.Walker
	store.ItemTypes
	store.People
	// Exec runs one statement in a transaction of its own.
	Exec(ctx context.Context, sql string) error
	// Int returns the one integer that a query yields.
	Int(ctx context.Context, sql string) (int64, error)
}

// Run runs the suite. open returns an empty store that lives until the end of
// the test it is given; it is called once per test.
func Run(t *testing.T, open func(testing.TB) Store) {
	tests := []struct {
		name string
		run  func(*testing.T, Store)
	}{
		{"Model", testModel},
		{"IssueIsRecordedEvenWhenItChangesNothing", testIssueUnchanged},
		{"IssueWinsAgainstAGreaterClock", testIssueClock},
		{"LikedAtIsKeptWhileLiked", testLikedAt},
		{"TombstoneAndZeroSumNeedNoCounter", testNoCounterRow},
		{"ReplayAppliesOnlyIfNewer", testReplay},
		{"ExtremeIDs", testExtremeIDs},
		{"EmptyArguments", testEmpty},
		{"EndedContextAppliesNothingSilently", testEndedContext},
		{"ReadsAnswerByPosition", testReads},
		{"Likers", testLikers},
		{"LikedBy", testLikedBy},
		{"Now", testNow},
		{"AuditFindsEveryDrift", testAudit},
		{"AuditItem", testAuditItem},
		{"RepairAddsTheDriftOnce", testRepairOnce},
		{"RepairUnderLiveWrites", testRepairLive},
		{"ConcurrentEqualLikesChangeOnce", testEqualLikes},
		{"ConcurrentBatchesNeverFail", testOverlap},
		{"CountEqualsEdgesInEverySnapshot", testSnapshots},
		{"PagesUnderWrites", testPagesUnderWrites},
		{"WalkFindsEveryLikedEdgeInKeyOrder", testWalk},
		{"WalkStepsAreBounded", testWalkSteps},
		{"WalkUnderWrites", testWalkUnderWrites},
		{"AddModel", testAddModel},
		{"AnEventIsCountedByTallyItemAndID", testAddKey},
		{"ConcurrentEqualEventsCountOnce", testEqualAdds},
		{"ForgettingChangesNoCount", testForget},
		{"TalliesAreNotAudited", testTalliesAreNotAudited},
		{"EndedContextCountsNothingSilently", testAddEndedContext},
		{"ItemTypesNeverChange", testItemTypes},
		{"ItemTypesOfConcurrentStarts", testItemTypesConcurrent},
		{"PeopleProgram", func(t *testing.T, s Store) { testPeopleProgram(t, s) }},
		{"RelationsOfAnErasedUserGo", testEraseRelations},
		{"RelationsOfAMergedUserMove", testMergeRelations},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

// post is the item type that most tests use.
const post likes.ItemType = 1

// at is the instant that the suite's clocks start from.
func at(micros int64) time.Time {
	return time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(micros) * time.Microsecond)
}

// clockAt is the clock of that instant on instance 7.
func clockAt(micros int64) likes.Clock { return likes.ClockAt(at(micros), 7) }

func item(id int64) likes.Item { return likes.Item{Type: post, ID: likes.ItemID(id)} }

func edge(user, id int64) likes.Edge {
	return likes.Edge{Counter: likes.Likes, Item: item(id), User: likes.UserID(user)}
}

// set and clear are writes at the given microsecond.
func set(user, id, micros int64) store.Write {
	return store.Write{Edge: edge(user, id), Liked: true, Clock: clockAt(micros), LikedAt: at(micros)}
}

func clear(user, id, micros int64) store.Write {
	w := set(user, id, micros)
	w.Liked = false
	return w
}

// sorted brings writes into the order that a commit asks for.
func sorted(ws []store.Write) []store.Write {
	slices.SortFunc(ws, func(a, b store.Write) int { return a.Edge.Compare(b.Edge) })
	return ws
}

// issue and replay commit the writes, which must succeed.
func issue(t testing.TB, s Store, ws ...store.Write) []store.Written {
	t.Helper()
	return commit(t, s, store.Commit{Writes: sorted(ws)})
}

func replay(t testing.TB, s Store, ws ...store.Write) []store.Written {
	t.Helper()
	return commit(t, s, store.Commit{Replay: true, Writes: sorted(ws)})
}

func commit(t testing.TB, s Store, c store.Commit) []store.Written {
	t.Helper()
	out := make([]store.Written, len(c.Writes))
	require.NoError(t, s.Commit(t.Context(), c, out))
	return out
}

// register and count read one thing.
func register(t testing.TB, s Store, e likes.Edge) likes.Register {
	t.Helper()
	out := make([]likes.Register, 1)
	require.NoError(t, s.Registers(t.Context(), e.Counter, e.User, []likes.Item{e.Item}, out))
	return out[0]
}

func count(t testing.TB, s Store, i likes.Item) store.CountRow {
	t.Helper()
	out := make([]store.CountRow, 1)
	require.NoError(t, s.Counts(t.Context(), likes.Likes, []likes.Item{i}, out))
	return out[0]
}

// requireExact fails unless every counter equals its edges.
func requireExact(t testing.TB, s Store) {
	t.Helper()
	drifts, _ := walk(t, s, 100)
	require.Empty(t, drifts)
}

// walk audits everything in steps and returns the drifts and the number of
// counters compared.
func walk(t testing.TB, s Store, limit int) (drifts []store.Drift, checked int) {
	t.Helper()
	var after store.Key
	for {
		a, err := s.Audit(t.Context(), after, limit)
		require.NoError(t, err)
		require.LessOrEqual(t, a.Checked, limit)
		checked += a.Checked
		drifts = append(drifts, a.Drifts...)
		if a.Next == (store.Key{}) {
			return drifts, checked
		}
		require.Positive(t, a.Next.Compare(after), "a walk must go forward")
		after = a.Next
	}
}
