package postgres

import "time"

// IssueSQL is the statement under test, for transactions that a test holds open.
const IssueSQL = issueSQL

// ReplaySQL is that of replays.
const ReplaySQL = replaySQL

// AuditSQL compares the next counters of a walk.
const AuditSQL = walkSQL + compareSQL

// SessionSQL is what every session of a store starts with.
func SessionSQL(timeout time.Duration) string { return sessionSQL(timeout) }

// SchemaVersion is the last step that Open asks for.
const SchemaVersion = schemaVersion

// SetServerClock makes the store believe that the server's clock shows this.
func SetServerClock(s *Store, now time.Time) { s.server.read(now) }

// The statements of the catalog under test.
const (
	FactsSQL        = factsSQL
	PutItemSQL      = putItemSQL
	PutBlockSQL     = putBlockSQL
	PutItemBlockSQL = putItemBlockSQL
	PutFollowSQL    = putFollowSQL
)
