package postgres

import "time"

// IssueSQL is the statement under test, for transactions that a test holds open.
const IssueSQL = issueSQL

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

// SessionSQL is what sessions begin with.
func SessionSQL() string { return sessionSQL(10 * time.Second) }
