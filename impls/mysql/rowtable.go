package mysql

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/lockbench/lockbench/impls"
)

// rowTable is a table whose rows are locked.
type rowTable struct {
	recipe string
	table  string
	index  string // an index on the keys, after a comma; or ""
}

// prepare creates the table, and a row for each key, since a missing row cannot
// be locked. Existing rows may be locked, and remain.
func (r rowTable) prepare(ctx context.Context, cfg impls.Config, keys []string) error {
	c, err := createTable(ctx, cfg, r.recipe, "CREATE TABLE IF NOT EXISTS "+r.table+` (
  id          INT            NOT NULL AUTO_INCREMENT PRIMARY KEY,
  method_name VARBINARY(255) NOT NULL`+r.index+"\n) ENGINE=InnoDB", keys)
	if err != nil {
		return err
	}
	defer c.Close()
	missing, err := r.missing(ctx, c.s.conn, keys)
	if err != nil {
		return fmt.Errorf("prepare %s: read the table: %w", r.recipe, err)
	}
	return c.addRows(ctx, r.recipe, "INSERT INTO "+r.table+" (method_name) VALUES ", missing)
}

// missing lists the keys that have no row.
func (r rowTable) missing(ctx context.Context, conn *sql.Conn, keys []string) ([]string, error) {
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
	var missing []string
	for _, key := range keys {
		if !there[key] {
			there[key] = true
			missing = append(missing, key)
		}
	}
	return missing, rows.Err()
}
