package sqlite

// Writing says whether a call holds the writer.
func (s *Store) Writing() bool { return len(s.writer) == 0 }

// Statements are the SQL texts of all reads and writes, for n rows.
func Statements(n int) []string {
	var all []string
	for _, s := range []statement{
		selectRegisters, selectCounts, selectLikers, selectLikedSameType, selectLikedNextTypes,
		selectCounterPage, selectEdgePage, selectDrift, upsertEdges, upsertCounters, selectWalk,
		deleteEvents,
		selectItem, upsertItem, insertBlock, deleteBlock, insertItemBlock, deleteItemBlock, insertFollow, deleteFollow,
		selectFacts, selectBlocked, selectGiven, selectReceived,
	} {
		all = append(all, s.sql(n))
	}
	return all
}
