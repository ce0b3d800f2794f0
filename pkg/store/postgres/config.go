package postgres

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config says which database to use and how much of it. There is no value that
// means "unlimited".
type Config struct {
	// DSN is a connection string in URL or key=value form; PGHOST and the
	// other variables of libpq fill in what it leaves out.
	DSN string
	// MaxConns bounds the pool, 1 or more. Every lane of writes uses one.
	MaxConns int
	// Writers is how many of these connections reads and audits leave to
	// commits, one per lane, 0 to MaxConns-1. Without them a commit waits behind
	// every read that came before it: a flood of reads stops the writes.
	Writers int
	// StatementTimeout is when the server ends a statement and the transaction
	// with it, 1 ms or more. The client gives up a second later. Audits and
	// repairs have [auditTimeout] instead.
	StatementTimeout time.Duration
	// AllowUnsafe lets Open succeed although the server can lose what it has
	// acknowledged (see [Store.CheckDurability]).
	AllowUnsafe bool
	// SchemaUp is the command that messages name where the schema is missing or
	// old; "" means `likectl schema up`.
	SchemaUp string
	// Logger gets warnings; nil discards them.
	Logger *slog.Logger
}

const (
	// grace is how much longer than the server the client waits: the server's
	// own timeout is the better answer, since it says that nothing was applied.
	grace = time.Second
	// connectTimeout bounds a dial where the DSN has no connect_timeout.
	connectTimeout = 5 * time.Second
	// pingTimeout bounds the check of a connection that was idle for a second.
	pingTimeout = 2 * time.Second
	// driverConnectTimeout is what pgx takes where the DSN has none.
	driverConnectTimeout = 2 * time.Minute
)

// pool returns the driver's configuration, or an error that names what is wrong.
func (c Config) pool() (*pgxpool.Config, error) {
	switch {
	case c.DSN == "":
		return nil, fmt.Errorf("postgres: the connection string is empty, want postgres://user@host/database")
	case c.MaxConns < 1:
		return nil, fmt.Errorf("postgres: %d connections at most, want 1 or more", c.MaxConns)
	case c.Writers < 0 || c.Writers >= c.MaxConns:
		return nil, fmt.Errorf("postgres: %d of %d connections for writes, want at least one left for reads", c.Writers, c.MaxConns)
	case c.StatementTimeout < time.Millisecond:
		return nil, fmt.Errorf("postgres: a statement timeout of %v, want 1ms or more", c.StatementTimeout)
	}
	p, err := pgxpool.ParseConfig(c.DSN)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err) // pgx leaves the password out
	}
	p.MaxConns = int32(min(c.MaxConns, 1<<15)) //nolint:gosec // bounded
	p.MinConns = min(p.MinConns, p.MaxConns)
	p.PingTimeout = pingTimeout
	dial(p.ConnConfig)
	return p, nil
}

// dial bounds how long a connection may take to open, and names it to the server
// unless the DSN or PGAPPNAME does.
func dial(c *pgx.ConnConfig) {
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "likectl"
	}
	if c.ConnectTimeout == 0 || c.ConnectTimeout == driverConnectTimeout {
		c.ConnectTimeout = connectTimeout
	}
}

// place names the database in messages, without user and password.
func place(c *pgx.ConnConfig) string {
	return fmt.Sprintf("postgres %s:%d/%s", c.Host, c.Port, c.Database)
}
