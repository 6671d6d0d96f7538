package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/internal/backend"
)

// gtid is the origin of a MariaDB's writes: their domain and the server that
// took them.
type gtid struct{ domain, server string }

// gtids reads positions, "0-1-57,0-2-60": the last number by origin.
func gtids(text string) (map[gtid]uint64, error) {
	last := map[gtid]uint64{}
	for one := range strings.SplitSeq(text, ",") {
		if one == "" {
			continue
		}
		part := strings.Split(one, "-")
		if len(part) != 3 {
			return nil, fmt.Errorf("%q is no position", one)
		}
		number, err := strconv.ParseUint(part[2], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no position: %w", one, err)
		}
		last[gtid{part[0], part[1]}] = number
	}
	return last, nil
}

// ownWrites returns the position up to which a node has writes that another node
// does not have; "" if there are none.
func ownWrites(ctx context.Context, n, other *backend.Node) (string, error) {
	var has [2]map[gtid]uint64
	for i, one := range []*backend.Node{n, other} {
		v, err := askPairs(ctx, one, "SHOW GLOBAL VARIABLES LIKE 'gtid_binlog_state'")
		if err == nil {
			has[i], err = gtids(v["gtid_binlog_state"])
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", one.Name, err)
		}
	}
	for origin, number := range has[0] {
		if number > has[1][origin] {
			return fmt.Sprintf("%s-%s-%d", origin.domain, origin.server, number), nil
		}
	}
	return "", nil
}

// rebuild replaces a node's data by a consistent copy of another node's, with the
// position in the log of writes, so that the node can follow from there. The
// accounts are the same on all nodes, and stay.
func rebuild(ctx context.Context, from, to *backend.Node) error {
	source, closeSource, err := connect(ctx, from)
	if err != nil {
		return err
	}
	defer closeSource()
	target, closeTarget, err := connect(ctx, to)
	if err != nil {
		return err
	}
	defer closeTarget()
	state, err := snapshot(ctx, source)
	if err != nil {
		return fmt.Errorf("look at %s at one moment: %w", from.Name, err)
	}
	err = exec(ctx, target, "STOP SLAVE", "RESET SLAVE ALL",
		"SET SESSION sql_log_bin=0, foreign_key_checks=0, sql_mode='NO_AUTO_VALUE_ON_ZERO'",
		"DROP DATABASE IF EXISTS "+database, "CREATE DATABASE "+database, "USE "+database)
	if err != nil {
		return err
	}
	tables, err := queryText(ctx, source, "SHOW FULL TABLES FROM "+database+" WHERE Table_type='BASE TABLE'")
	if err != nil {
		return err
	}
	for _, row := range tables {
		if err := copyTable(ctx, source, target, row[0].String); err != nil {
			return fmt.Errorf("table %s: %w", row[0].String, err)
		}
	}
	return exec(ctx, target, "RESET MASTER", "SET GLOBAL gtid_binlog_state='"+state+"'")
}

// snapshot begins a transaction with a consistent view, and returns the position
// of the log at that moment.
func snapshot(ctx context.Context, conn *sql.Conn) (string, error) {
	// Of the writers only the primary has new writes, so all but its last one is
	// as before.
	state, err := queryText(ctx, conn, "SELECT @@GLOBAL.gtid_binlog_state")
	if err != nil {
		return "", err
	}
	err = exec(ctx, conn, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "START TRANSACTION WITH CONSISTENT SNAPSHOT")
	if err != nil {
		return "", err
	}
	moment, err := queryText(ctx, conn, "SELECT BINLOG_GTID_POS("+
		"(SELECT VARIABLE_VALUE FROM information_schema.SESSION_STATUS WHERE VARIABLE_NAME='BINLOG_SNAPSHOT_FILE'),"+
		"(SELECT VARIABLE_VALUE FROM information_schema.SESSION_STATUS WHERE VARIABLE_NAME='BINLOG_SNAPSHOT_POSITION'))")
	if err != nil {
		return "", err
	}
	if !moment[0][0].Valid {
		return "", errors.New("the server did not return the position of its log")
	}
	before, err := gtids(state[0][0].String)
	if err != nil {
		return "", err
	}
	now, err := gtids(moment[0][0].String)
	if err != nil {
		return "", err
	}
	// The last transaction of a domain is its position.
	var list []string
	for origin, number := range before {
		if _, newer := now[origin]; !newer {
			list = append(list, fmt.Sprintf("%s-%s-%d", origin.domain, origin.server, number))
		}
	}
	return strings.Join(append(list, moment[0][0].String), ","), nil
}

// copyTable copies a table, with its rows.
func copyTable(ctx context.Context, from, to *sql.Conn, table string) error {
	name := "`" + database + "`.`" + strings.ReplaceAll(table, "`", "``") + "`"
	create, err := queryText(ctx, from, "SHOW CREATE TABLE "+name)
	if err != nil {
		return err
	}
	rows, err := queryText(ctx, from, "SELECT * FROM "+name)
	if err != nil {
		return err
	}
	if err := exec(ctx, to, create[0][1].String, "START TRANSACTION"); err != nil {
		return err
	}
	if len(rows) > 0 {
		marks := strings.Repeat(",?", len(rows[0]))[1:]
		insert, err := to.PrepareContext(ctx, "INSERT INTO "+name+" VALUES ("+marks+")")
		if err != nil {
			return err
		}
		defer insert.Close()
		for _, row := range rows {
			values := make([]any, len(row))
			for i, v := range row {
				values[i] = v
			}
			if _, err := insert.ExecContext(ctx, values...); err != nil {
				return err
			}
		}
	}
	return exec(ctx, to, "COMMIT")
}

// connect is one connection, which keeps its session's settings.
func connect(ctx context.Context, n *backend.Node) (conn *sql.Conn, end func(), err error) {
	db, err := open(n)
	if err != nil {
		return nil, nil, err
	}
	if conn, err = db.Conn(ctx); err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return conn, func() { conn.Close(); db.Close() }, nil
}

func exec(ctx context.Context, conn *sql.Conn, statements ...string) error {
	for _, statement := range statements {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// queryText asks for rows, as text.
func queryText(ctx context.Context, conn *sql.Conn, query string) (list [][]sql.NullString, err error) {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		names, err := rows.Columns()
		if err != nil {
			return nil, err
		}
		row := make([]sql.NullString, len(names))
		into := make([]any, len(names))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		list = append(list, row)
	}
	return list, rows.Err()
}
