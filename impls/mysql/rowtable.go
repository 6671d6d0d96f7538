package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/impls"
)

// rowTable is a table of which a row is locked.
type rowTable struct {
	recipe string // whose table it is
	table  string
	index  string // one on the keys, with a comma before it; or ""
}

// prepare creates the table, and a row for each key: what is not there cannot
// be locked. Rows that are there may be locked, and stay as they are.
func (r rowTable) prepare(ctx context.Context, cfg impls.Config, keys []string) error {
	if err := checkRowNames(r.recipe, keys); err != nil {
		return err
	}
	c, err := open(ctx, cfg, options{})
	if err != nil {
		return fmt.Errorf("prepare %s: %w", r.recipe, err)
	}
	defer c.Close()
	create := "CREATE TABLE IF NOT EXISTS " + r.table + ` (
  id          INT            NOT NULL AUTO_INCREMENT PRIMARY KEY,
  method_name VARBINARY(255) NOT NULL` + r.index + "\n) ENGINE=InnoDB"
	if _, err := c.s.conn.ExecContext(ctx, create); err != nil {
		return fmt.Errorf("prepare %s: create the table: %w", r.recipe, err)
	}
	missing, err := r.missing(ctx, c.s.conn, keys)
	if err != nil {
		return fmt.Errorf("prepare %s: read the table: %w", r.recipe, err)
	}
	for part := range slices.Chunk(missing, rowsAtOnce) {
		stmt := "INSERT INTO " + r.table + " (method_name) VALUES " + strings.Repeat("(?),", len(part)-1) + "(?)"
		// Without an index whoever holds a row keeps new ones out of the table.
		for refused := true; refused; {
			_, err := c.s.conn.ExecContext(ctx, stmt, part...)
			refused = errors.Is(rules().Outcome(err), errRefused) && ctx.Err() == nil
			if err != nil && !refused {
				return fmt.Errorf("prepare %s: insert rows: %w", r.recipe, err)
			}
		}
	}
	return nil
}

// missing lists the keys that have no row.
func (r rowTable) missing(ctx context.Context, conn *sql.Conn, keys []string) ([]any, error) {
	rows, err := conn.QueryContext(ctx, "SELECT method_name FROM "+r.table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	there := make(map[string]bool)
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		there[name] = true
	}
	var missing []any
	for _, key := range keys {
		if !there[key] {
			there[key] = true
			missing = append(missing, key)
		}
	}
	return missing, rows.Err()
}
