package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

const (
	selectTypes statement = "SELECT name, type FROM item_types"
	insertType  statement = "INSERT INTO item_types (type, name) VALUES (?, ?)"
)

// ItemTypes implements [store.ItemTypes].
func (s *Store) ItemTypes(ctx context.Context) (types map[string]likes.ItemType, err error) {
	err = s.read(ctx, "read the item types", func(c *conn) error {
		types, err = c.itemTypes(ctx)
		return err
	})
	return types, err
}

// RegisterItemTypes implements [store.ItemTypes].
func (s *Store) RegisterItemTypes(ctx context.Context, types map[string]likes.ItemType) error {
	var contradiction error
	err := s.write(ctx, "register the item types", func(ctx context.Context, c *conn) error {
		registered, err := c.itemTypes(ctx)
		if err != nil {
			return err
		}
		added, err := store.NewItemTypes(registered, types)
		if err != nil {
			contradiction = err
			return err
		}
		for name, n := range added {
			c.bind(int64(n))
			c.args = append(c.args, driver.NamedValue{Ordinal: len(c.args) + 1, Value: name})
			if err := c.exec(ctx, insertType, 1); err != nil {
				return err
			}
		}
		return nil
	})
	if contradiction != nil {
		return contradiction // rolled back, and not the database's fault
	}
	return err
}

func (c *conn) itemTypes(ctx context.Context) (map[string]likes.ItemType, error) {
	types := make(map[string]likes.ItemType)
	var bad error
	err := c.query(ctx, selectTypes, 1, func(row []driver.Value) {
		name, ok := row[0].(string)
		if !ok {
			bad = errors.New("a name in item_types is no text")
		}
		types[name] = likes.ItemType(number(row[1]))
	})
	return types, errors.Join(err, bad)
}
