package cluster

import (
	"context"
	"fmt"
)

// mysqlOracleWords are those of MySQL 8.0.26 and later.
func mysqlOracleWords() mysqlWords {
	return mysqlWords{
		flags: map[string]string{
			"log-bin": "binlog", "log-replica-updates": "ON", "relay-log": "relay",
			"gtid-mode": "ON", "enforce-gtid-consistency": "ON", "super-read-only": "ON", "replica-net-timeout": "4",
		},
		semiSync: map[string]string{
			// What is loaded here is known only later, hence "loose".
			"plugin-load-add":                            "semisync_source.so;semisync_replica.so",
			"loose-rpl-semi-sync-source-enabled":         "ON",
			"loose-rpl-semi-sync-replica-enabled":        "ON",
			"loose-rpl-semi-sync-source-timeout":         "3000",
			"loose-rpl-semi-sync-source-wait-point":      "AFTER_SYNC",
			"loose-rpl-semi-sync-source-wait-no-replica": "ON",
		},
		settings: []string{
			"gtid_mode", "replica_net_timeout", "replica_parallel_workers",
			"rpl_semi_sync_source_enabled", "rpl_semi_sync_source_timeout", "rpl_semi_sync_source_wait_point",
			"rpl_semi_sync_source_wait_no_replica", "rpl_semi_sync_replica_enabled",
		},
		waiting: "Rpl_semi_sync_source_status",
		// An administrator writes to a server that is only read_only.
		refuses: "super_read_only",
		fence:   "SET GLOBAL super_read_only=ON",
		open:    "SET GLOBAL read_only=OFF", // and super_read_only with it

		status:      "SHOW REPLICA STATUS",
		stopReading: "STOP REPLICA IO_THREAD",
		follow: func(host string, port int) []string {
			return []string{
				"STOP REPLICA", "RESET REPLICA ALL",
				fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST='%s', SOURCE_PORT=%d, SOURCE_USER='root', SOURCE_CONNECT_RETRY=1, SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1", host, port),
				"START REPLICA",
			}
		},
		forget: []string{"STOP REPLICA", "RESET REPLICA ALL"},
		behind: func(p, r variables) bool { return p["gtid_executed"] != r["gtid_executed"] },
		applied: func(ctx context.Context, n *Node, status variables) (bool, error) {
			v, err := mysqlRows(ctx, n, "SELECT 'all', GTID_SUBSET('"+status["Retrieved_Gtid_Set"]+"', @@GLOBAL.gtid_executed)")
			return v["all"] == "1", err
		},
	}
}
