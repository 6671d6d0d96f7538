package cluster

import (
	"context"
	"fmt"
)

// mysqlWords is how a product spells what both products do.
type mysqlWords struct {
	flags    map[string]string // of every node of a replicated topology
	semiSync map[string]string // of every node, if commits wait for a replica
	settings []string          // to read back
	waiting  string            // status of a primary: commits wait for a replica now
	refuses  string            // the variable that says that clients cannot write

	fence, open string // refuse writes, take them

	status      string                               // of a replica; column names are brought to MariaDB's
	stopReading string                               // take nothing more from the primary, and go on to apply
	follow      func(host string, port int) []string // be a replica of the server there
	forget      []string                             // be none
	behind      func(p, r variables) bool            // replica r has not yet all that primary p has
	dropClients []string                             // end the connections of clients
	// own tells up to where a node has writes that another one has not, "" if it
	// has none; nil where we cannot tell, or could do nothing about it. rebuild
	// replaces all that a node has by what another has.
	own     func(ctx context.Context, n, other *Node) (string, error)
	rebuild func(ctx context.Context, from, to *Node) error
	// applied: a replica with this status has applied all that it received.
	applied func(ctx context.Context, n *Node, status variables) (bool, error)
}

// variables of a server, by name.
type variables map[string]string

// mariaDBWords are those of MariaDB 10.6 and later. Every node is ready to be
// either: it starts closed to clients, and Promote opens one.
func mariaDBWords() mysqlWords {
	return mysqlWords{
		flags: map[string]string{
			"log-bin": "binlog", "log-slave-updates": "ON", "relay-log": "relay",
			"gtid-strict-mode": "ON", "read-only": "ON", "slave-net-timeout": "4",
		},
		semiSync: map[string]string{
			"rpl-semi-sync-master-enabled": "ON", "rpl-semi-sync-slave-enabled": "ON",
			"rpl-semi-sync-master-timeout": "3000", "rpl-semi-sync-master-wait-point": "AFTER_SYNC",
		},
		settings: []string{
			"gtid_strict_mode", "slave_net_timeout", "slave_parallel_mode",
			"rpl_semi_sync_master_enabled", "rpl_semi_sync_master_timeout", "rpl_semi_sync_master_wait_point",
			"rpl_semi_sync_master_wait_no_slave", "rpl_semi_sync_slave_enabled",
		},
		waiting: "Rpl_semi_sync_master_status",
		refuses: "read_only",
		fence:   "SET GLOBAL read_only=ON",
		open:    "SET GLOBAL read_only=OFF",

		status:      "SHOW SLAVE STATUS",
		stopReading: "STOP SLAVE IO_THREAD",
		follow: func(host string, port int) []string {
			return []string{
				"STOP SLAVE", "RESET SLAVE ALL",
				// What it has is what it has logged, as primary or as replica.
				"SET GLOBAL gtid_slave_pos=@@GLOBAL.gtid_binlog_pos",
				fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='%s', MASTER_PORT=%d, MASTER_USER='root', MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=slave_pos", host, port),
				"START SLAVE",
			}
		},
		forget:      []string{"STOP SLAVE", "RESET SLAVE ALL"},
		behind:      func(p, r variables) bool { return p["gtid_binlog_pos"] != r["gtid_slave_pos"] },
		dropClients: []string{"KILL USER " + mysqlUser},
		own:         mariaDBOwn,
		rebuild:     mariaDBRebuild,
		applied: func(ctx context.Context, n *Node, status variables) (bool, error) {
			v, err := mysqlRows(ctx, n, "SHOW GLOBAL VARIABLES LIKE 'gtid_slave_pos'")
			return v["gtid_slave_pos"] == status["Gtid_IO_Pos"], err
		},
	}
}
