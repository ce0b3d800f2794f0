package postgres

// String names the database: host, port and name, never user or password.
func (s *Store) String() string { return s.place }
