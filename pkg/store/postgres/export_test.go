package postgres

// IssueSQL is the statement under test, for transactions that a test holds open.
const IssueSQL = issueSQL

// SchemaVersion is the last step that Open asks for.
const SchemaVersion = schemaVersion
