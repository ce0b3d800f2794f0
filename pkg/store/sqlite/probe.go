package sqlite

import (
	"context"

	"likectl/pkg/store"
)

var _ store.WriteProber = (*Store)(nil)

// flip, done twice in a transaction, leaves the row as it was and its page written:
// SQLite writes no page for a row that is set to what it has.
const flip statement = "UPDATE likectl_meta SET epoch = -epoch WHERE id = 1"

// ProbeWrite implements [store.WriteProber] with a transaction of one page.
func (s *Store) ProbeWrite(ctx context.Context) error {
	return s.write(ctx, "probe a write", func(ctx context.Context, c *conn) error {
		if err := c.exec(ctx, flip, 1); err != nil {
			return err
		}
		return c.exec(ctx, flip, 1)
	})
}
