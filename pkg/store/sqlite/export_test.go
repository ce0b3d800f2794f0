package sqlite

// Writing says whether a call holds the writer.
func (s *Store) Writing() bool { return len(s.writer) == 0 }

// Statements are the SQL texts of all reads and writes, for n rows.
func Statements(n int) []string {
	var all []string
	for _, s := range []statement{
		selectRegisters, selectCounts, selectLikers, selectLikedSameType, selectLikedNextTypes,
		selectCounterPage, selectEdgePage, selectDrift, upsertEdges, upsertCounters, selectWalk,
		deleteEvents, selectErased, selectErasure, selectEdgesOf, deleteEdges,
		selectRemains, finishErasure, addToErasure,
	} {
		all = append(all, s.sql(n))
	}
	for _, r := range relations() {
		all = append(all, r.take.sql(n))
	}
	return all
}
