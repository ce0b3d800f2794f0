package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net/url"
	"strconv"
	"strings"

	"modernc.org/sqlite"
)

// maxRows is the most rows of one statement: a power of two, and with 7 columns
// well below SQLite's limit of 32,766 parameters.
const maxRows = 1024

// The settings of the two kinds of connections. A cache of 64 MB keeps the
// upper levels of trees of some ten million edges; a checkpoint after 32 MB of
// WAL (SQLite's default is 4 MB) writes pages that many batches touch once
// instead of each time, for a recovery that takes a fraction of a second longer.
// A statement of many rows saves the pages it changes, to undo itself alone;
// temp_store keeps them in memory, which makes batches half as fast again. What is
// deleted is overwritten with zeros (secure_delete): otherwise an erased user's
// edges stay readable in the file until something else happens to need the place.
// Only copies that pages left of rows when they were divided stay, under 1 % of
// them; VACUUM, on a file that no server has open, is rid of these too. It costs
// 4 to 9 % of a batch's time. Switched on for the steps of erasures alone it costs
// nothing and leaves a third, since pages are divided by every batch.
const (
	commonPragmas = "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	writerPragmas = commonPragmas +
		"&_pragma=temp_store(MEMORY)&_pragma=cache_size(-65536)&_pragma=wal_autocheckpoint(8192)&_pragma=journal_size_limit(67108864)" +
		"&_pragma=secure_delete(1)"
	readerPragmas = commonPragmas + "&_pragma=cache_size(-8192)&_pragma=query_only(1)"
)

// statement is SQL in which the part in braces stands once for every row, with
// # as the row's number.
type statement string

const (
	begin     statement = "BEGIN IMMEDIATE"
	beginRead statement = "BEGIN"
	commit    statement = "COMMIT"
	rollback  statement = "ROLLBACK"
)

// sql returns the text for n rows.
func (s statement) sql(n int) string {
	head, rest, ok := strings.Cut(string(s), "{")
	if !ok {
		return string(s)
	}
	row, tail, _ := strings.Cut(rest, "}")
	var b strings.Builder
	b.WriteString(head)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strings.ReplaceAll(row, "#", strconv.Itoa(i)))
	}
	b.WriteString(tail)
	return b.String()
}

// conn is one connection with its prepared statements, used by one goroutine at
// a time. It talks to the driver directly: database/sql would lock, convert and
// look up once more for each of the statements of a batch.
type conn struct {
	driver.Conn
	prepared map[preparedKey]driver.Stmt
	args     []driver.NamedValue
	row      []driver.Value
}

type preparedKey struct {
	statement
	rows int
}

// dsn returns the driver's name of a file: a URI, so that a path may contain a
// question mark.
func dsn(path, pragmas string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + pragmas
}

// dial opens a connection and checks that the file is in WAL mode: some network
// file systems silently keep another one, in which readers block the writer.
func dial(ctx context.Context, path, pragmas string) (*conn, error) {
	connector, err := sqlite.NewConnector(dsn(path, pragmas))
	if err != nil {
		return nil, err
	}
	dc, err := connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: dc, prepared: make(map[preparedKey]driver.Stmt)}
	mode := ""
	err = c.query(ctx, "PRAGMA journal_mode", 1, func(v []driver.Value) { mode, _ = v[0].(string) })
	if err == nil && mode != "wal" {
		err = fmt.Errorf("its journal mode is %q and cannot be WAL: the data folder must be on a local file system", mode)
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *conn) close() error {
	errs := make([]error, 0, len(c.prepared)+1)
	for _, stmt := range c.prepared {
		errs = append(errs, stmt.Close())
	}
	return errors.Join(append(errs, c.Close())...)
}

// prepare returns the statement for n rows, prepared once per connection. The
// arguments bound until the statement runs belong to it.
func (c *conn) prepare(ctx context.Context, s statement, n int) (driver.Stmt, error) {
	key := preparedKey{s, n}
	if stmt, ok := c.prepared[key]; ok {
		return stmt, nil
	}
	p, ok := c.Conn.(driver.ConnPrepareContext)
	if !ok {
		return nil, errors.New("the driver cannot prepare with a context")
	}
	stmt, err := p.PrepareContext(ctx, s.sql(n))
	if err != nil {
		return nil, err
	}
	c.prepared[key] = stmt
	return stmt, nil
}

// bind appends arguments for the next statement.
func (c *conn) bind(values ...int64) {
	for _, v := range values {
		c.args = append(c.args, driver.NamedValue{Ordinal: len(c.args) + 1, Value: v})
	}
}

// bindBytes appends a blob, which must not change until the statement has run.
func (c *conn) bindBytes(b []byte) {
	c.args = append(c.args, driver.NamedValue{Ordinal: len(c.args) + 1, Value: b})
}

// bindNulls appends keys that match no row.
func (c *conn) bindNulls(n int) {
	for range n {
		c.args = append(c.args, driver.NamedValue{Ordinal: len(c.args) + 1})
	}
}

// exec runs the statement for n rows with the bound arguments.
func (c *conn) exec(ctx context.Context, s statement, n int) error {
	defer c.unbind()
	stmt, err := c.prepare(ctx, s, n)
	if err != nil {
		return err
	}
	e, ok := stmt.(driver.StmtExecContext)
	if !ok {
		return errors.New("the driver cannot execute with a context")
	}
	_, err = e.ExecContext(ctx, c.args)
	return err
}

// query runs the statement for n rows with the bound arguments and calls fn
// with each row of the answer, whose values it must not keep.
func (c *conn) query(ctx context.Context, s statement, n int, fn func([]driver.Value)) (err error) {
	defer c.unbind()
	stmt, err := c.prepare(ctx, s, n)
	if err != nil {
		return err
	}
	q, ok := stmt.(driver.StmtQueryContext)
	if !ok {
		return errors.New("the driver cannot query with a context")
	}
	rows, err := q.QueryContext(ctx, c.args)
	if err != nil {
		return err
	}
	defer func() {
		// Close repeats the error of the row that failed.
		if e := rows.Close(); err == nil {
			err = e
		}
	}()
	n = len(rows.Columns())
	c.row = append(c.row[:0], make([]driver.Value, n)...)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := rows.Next(c.row); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		fn(c.row)
	}
}

func (c *conn) unbind() { c.args = c.args[:0] }

// rollback ends the transaction if there is one. Its only error says that there
// is none: several failures make SQLite roll back by itself.
func (c *conn) rollback(ctx context.Context) { _ = c.exec(ctx, rollback, 1) }

// padded returns how many rows a statement over n keys has: statements are
// prepared for powers of two only, and the keys that are too many are NULL.
func padded(n int) int { return 1 << bits.Len(uint(n-1)) }

// chunk returns how many of n rows the next statement writes: rows cannot be
// padded, so n is written as a sum of powers of two.
func chunk(n int) int { return min(maxRows, 1<<(bits.Len(uint(n))-1)) }

// number returns a column's value, 0 for NULL. The tables are STRICT: a column
// holds nothing else.
func number(v driver.Value) int64 {
	n, _ := v.(int64)
	return n
}
