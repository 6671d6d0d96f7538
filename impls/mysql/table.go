package mysql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/impls"
)

const (
	// maxRowName is the most bytes that a key may have in a table.
	maxRowName = 255
	// rowsAtOnce is how many rows one INSERT of a Prepare holds.
	rowsAtOnce = 500
)

// createTable sees that a recipe's table is there, and that it can hold keys. It
// returns the client that it did so with.
func createTable(ctx context.Context, cfg impls.Config, recipe, create string, keys []string) (*client, error) {
	for _, key := range keys {
		if len(key) == 0 || len(key) > maxRowName {
			return nil, fmt.Errorf("prepare %s: key %q has %d bytes; choose from 1 to %d", recipe, key, len(key), maxRowName)
		}
	}
	c, err := open(ctx, cfg, options{})
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", recipe, err)
	}
	if _, err := c.s.conn.ExecContext(ctx, create); err != nil {
		c.Close()
		return nil, fmt.Errorf("prepare %s: create the table: %w", recipe, err)
	}
	return c, nil
}

// addRows inserts a row for each key by insert, an INSERT up to its values.
func (c *client) addRows(ctx context.Context, recipe, insert string, keys []string) error {
	for part := range slices.Chunk(keys, rowsAtOnce) {
		stmt := insert + strings.Repeat("(?),", len(part)-1) + "(?)"
		args := make([]any, len(part))
		for i, key := range part {
			args[i] = key
		}
		// Whoever holds a row keeps new ones out of the gap before it, or, where
		// the table has no index, out of the table.
		for refused := true; refused; {
			_, err := c.s.conn.ExecContext(ctx, stmt, args...)
			refused = errors.Is(rules().Outcome(err), errRefused) && ctx.Err() == nil
			if err != nil && !refused {
				return fmt.Errorf("prepare %s: insert rows: %w", recipe, err)
			}
		}
	}
	return nil
}
