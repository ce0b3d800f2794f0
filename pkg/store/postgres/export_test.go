package postgres

import "time"

// IssueSQL is the statement under test, for transactions that a test holds open.
const IssueSQL = issueSQL

// SchemaVersion is the last step that Open asks for.
const SchemaVersion = schemaVersion

// SetServerClock makes the store believe that the server's clock shows this.
func SetServerClock(s *Store, now time.Time) { s.server.read(now) }
