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
	// maxRowName is the maximum length of a key in a table, in bytes.
	maxRowName = 255
	// rowsAtOnce is the number of rows in one INSERT of a Prepare.
	rowsAtOnce = 500
)

// createTable creates a recipe's table if necessary, after a check of the keys.
// It returns the client that it used.
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

// addRows inserts a row for each key with insert, an INSERT up to its values.
func (c *client) addRows(ctx context.Context, recipe, insert string, keys []string) error {
	for part := range slices.Chunk(keys, rowsAtOnce) {
		stmt := insert + strings.Repeat("(?),", len(part)-1) + "(?)"
		args := make([]any, len(part))
		for i, key := range part {
			args[i] = key
		}
		// A holder of a row blocks new rows in the gap before it, or, without
		// an index, in the whole table.
		for rejected := true; rejected; {
			_, err := c.s.conn.ExecContext(ctx, stmt, args...)
			rejected = errors.Is(rules().Outcome(err), errRefused) && ctx.Err() == nil
			if err != nil && !rejected {
				return fmt.Errorf("prepare %s: insert rows: %w", recipe, err)
			}
		}
	}
	return nil
}
