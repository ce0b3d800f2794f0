package postgres

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// The arrays of a batch go to the server in the binary format, appended to one
// buffer that is used again: pgx's own encoding of slices makes an interface
// value per element, which a thousand-row batch of seven arrays would notice.

// epoch2000 is the microsecond, since 1970, that Postgres counts from.
const epoch2000 = 946_684_800_000_000

// binaryFormat asks for all parameters and columns in binary.
func binaryFormat() []int16 { return []int16{1} }

// params are the encoded parameters of one statement.
type params struct {
	buf    []byte
	ends   []int
	values [][]byte
}

func (p *params) reset() { p.buf, p.ends = p.buf[:0], p.ends[:0] }

// mark returns how many parameters there are, and back drops all that came
// after a mark.
func (p *params) mark() int { return len(p.ends) }

func (p *params) back(mark int) {
	p.ends = p.ends[:mark]
	p.buf = p.buf[:p.ends[mark-1]]
}

// all returns the parameters in the order in which they were added.
func (p *params) all() [][]byte {
	p.values = p.values[:0]
	start := 0
	for _, end := range p.ends {
		p.values = append(p.values, p.buf[start:end])
		start = end
	}
	return p.values
}

func (p *params) end() { p.ends = append(p.ends, len(p.buf)) }

func (p *params) int2(v int16) {
	p.buf = binary.BigEndian.AppendUint16(p.buf, uint16(v)) //nolint:gosec // the bits are the number
	p.end()
}

func (p *params) int8(v int64) {
	p.buf = binary.BigEndian.AppendUint64(p.buf, uint64(v)) //nolint:gosec // the bits are the number
	p.end()
}

// header begins a one-dimensional array without nulls, indexed from 1.
func (p *params) header(oid uint32, n int) {
	for _, v := range [...]uint32{1, 0, oid, uint32(n), 1} { //nolint:gosec // n is a batch's size
		p.buf = binary.BigEndian.AppendUint32(p.buf, v)
	}
}

func (p *params) int2s(n int, at func(i int) int16) {
	p.header(pgtype.Int2OID, n)
	for i := range n {
		p.buf = append(p.buf, 0, 0, 0, 2)
		p.buf = binary.BigEndian.AppendUint16(p.buf, uint16(at(i))) //nolint:gosec // the bits are the number
	}
	p.end()
}

func (p *params) int8s(n int, at func(i int) int64) { p.wide(pgtype.Int8OID, n, at) }

func (p *params) times(n int, at func(i int) time.Time) {
	p.wide(pgtype.TimestamptzOID, n, func(i int) int64 { return at(i).UnixMicro() - epoch2000 })
}

func (p *params) wide(oid uint32, n int, at func(i int) int64) {
	p.header(oid, n)
	for i := range n {
		p.buf = append(p.buf, 0, 0, 0, 8)
		p.buf = binary.BigEndian.AppendUint64(p.buf, uint64(at(i))) //nolint:gosec // the bits are the number
	}
	p.end()
}

func (p *params) bools(n int, at func(i int) bool) {
	p.header(pgtype.BoolOID, n)
	for i := range n {
		b := byte(0)
		if at(i) {
			b = 1
		}
		p.buf = append(p.buf, 0, 0, 0, 1, b)
	}
	p.end()
}

func (p *params) time(v time.Time) { p.int8(v.UnixMicro() - epoch2000) }

func (p *params) uuids(n int, at func(i int) [16]byte) {
	p.header(pgtype.UUIDOID, n)
	for i := range n {
		e := at(i)
		p.buf = append(p.buf, 0, 0, 0, byte(len(e)))
		p.buf = append(p.buf, e[:]...)
	}
	p.end()
}

func smallint(b []byte) int16 { return int16(binary.BigEndian.Uint16(b)) } //nolint:gosec // the bits are the number
func bigint(b []byte) int64   { return int64(binary.BigEndian.Uint64(b)) } //nolint:gosec // the bits are the number
func boolean(b []byte) bool   { return b[0] != 0 }

// run executes a prepared statement and hands each row to a function, which may
// keep nothing of it. It returns nil only once the server is ready for the next
// statement: by then the transaction has committed. The end of the command alone
// does not say so, since it is sent before the commit.
func (s *Store) run(ctx context.Context, statement string, p *params, row func([][]byte)) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return &unsentError{err}
	}
	defer conn.Release()
	rows := conn.Conn().PgConn().ExecPrepared(ctx, statement, p.all(), binaryFormat(), binaryFormat())
	for rows.NextRow() {
		row(rows.Values())
	}
	_, err = rows.Close()
	return err
}
