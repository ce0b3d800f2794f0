package ingest

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
)

// csvFormat reads the lines of a CSV file by the columns of its header. None of
// the fields can contain a line end, so a line is a record.
type csvFormat struct {
	columns []field
}

// readHeader finds out which column is which field.
func readHeader(line []byte) (*csvFormat, error) {
	names, err := splitQuoted(line)
	if err != nil {
		return nil, err
	}
	c := &csvFormat{}
	var have [numFields]bool
	for _, name := range names {
		name = bytes.TrimSpace(name)
		f := fieldOf(name)
		switch {
		case f == noField:
			return nil, errUnknown("the header", "column", name)
		case have[f]:
			return nil, fmt.Errorf("the header has the column %v twice", f)
		}
		have[f] = true
		c.columns = append(c.columns, f)
	}
	for f := range required {
		if !have[f] {
			return nil, fmt.Errorf("the header lacks the column %v; it must name %s", field(f), "user_id, item_type and item_id")
		}
	}
	return c, nil
}

// parse implements format. Lines without quotes, nearly all, are split in place.
func (c *csvFormat) parse(line []byte, r *record) error {
	if bytes.IndexByte(line, '"') >= 0 {
		return c.parseQuoted(line, r)
	}
	for i, f := range c.columns {
		value, rest, more := bytes.Cut(line, []byte{','})
		if last := i == len(c.columns)-1; more == last {
			return c.errColumns(i + 1 + bytes.Count(rest, []byte{','}) + number(more))
		}
		r[f], line = value, rest
	}
	return nil
}

func (c *csvFormat) parseQuoted(line []byte, r *record) error {
	values, err := splitQuoted(line)
	if err != nil {
		return err
	}
	if len(values) != len(c.columns) {
		return c.errColumns(len(values))
	}
	for i, f := range c.columns {
		r[f] = values[i]
	}
	return nil
}

func (c *csvFormat) errColumns(have int) error {
	return fmt.Errorf("it has %d columns, the header has %d", have, len(c.columns))
}

func splitQuoted(line []byte) ([][]byte, error) {
	values, err := csv.NewReader(bytes.NewReader(line)).Read()
	if err != nil {
		var p *csv.ParseError
		if errors.As(err, &p) {
			err = p.Err // its line number is not the file's
		}
		return nil, err
	}
	out := make([][]byte, len(values))
	for i, v := range values {
		out[i] = []byte(v)
	}
	return out, nil
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}
