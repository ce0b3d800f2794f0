package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

const selectTypes = "select name, type from item_types"

// ItemTypes implements [store.ItemTypes].
func (s *Store) ItemTypes(ctx context.Context) (map[string]likes.ItemType, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	rows, err := s.pool.Query(ctx, selectTypes)
	if err != nil {
		return nil, s.readErr("read the item types", err)
	}
	types, err := collectTypes(rows)
	if err != nil {
		return nil, s.readErr("read the item types", err)
	}
	return types, nil
}

// RegisterItemTypes implements [store.ItemTypes]. The lock comes first, so that
// what is read is what those before have committed.
func (s *Store) RegisterItemTypes(ctx context.Context, types map[string]likes.ItemType) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock(hashtextextended('likectl item types', 0))"); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, selectTypes)
		if err != nil {
			return err
		}
		registered, err := collectTypes(rows)
		if err != nil {
			return err
		}
		added, err := store.NewItemTypes(registered, types)
		if err != nil {
			return err
		}
		for name, n := range added {
			if _, err := tx.Exec(ctx, "insert into item_types (name, type) values ($1, $2)", name, int16(n)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, likes.ErrInvalid) {
		return s.writeErr("register the item types", err)
	}
	return err
}

func collectTypes(rows pgx.Rows) (map[string]likes.ItemType, error) {
	types := make(map[string]likes.ItemType)
	var name string
	var n int16
	_, err := pgx.ForEachRow(rows, []any{&name, &n}, func() error {
		types[name] = likes.ItemType(n)
		return nil
	})
	return types, err
}
