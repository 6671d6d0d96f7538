package mysql

import (
	"context"

	"github.com/lockbench/lockbench/impls"
)

// forUpdate is mysql/for-update: a row that a transaction reads for update, and
// holds until it ends.
//
// Document: a blog's comparison of three ways to build a lock, part on the
// database's exclusive lock.
//
//	acquire  SELECT ... FOR UPDATE of the key's row by its unique index, in a new
//	         transaction
//	release  COMMIT
//
// Round trips: 1 to acquire, 1 to release; a waiter, queued in the server, asks
// again after 50 s, the server's own limit. A try uses NOWAIT; a busy one adds
// a ROLLBACK.
// Bound: the connection, one for every holder and waiter; there is no lease,
// and the TTL has no meaning. Takeover: when the server detects the end of the
// connection; after the silent loss of a host only when TCP does.
// Guarantee: one holder while its connection lives; a silent holder keeps the
// lock. Waiters are served in order of arrival if the server grants so: MariaDB
// does; MySQL may prefer a transaction that blocks more others, and takes the
// longest waiting of equal ones.
// Failure: the server ends the connection, as with mysql/get-lock. Each server
// of a Galera cluster locks rows by itself and grants the lock to one client,
// and no client detects it, since none changes the row. Holders and waiters use
// up the connections: where the clients of a process share a pool
// (impls.Config.Shared), the waiters of one key block all other keys, in no
// order. A holder also blocks new rows in the gap before its own, so prepare
// all keys before any is held.
func forUpdate() rowLock {
	return rowLock{
		rowTable: rowTable{recipe: "mysql/for-update", table: "lockbench_for_update", index: ",\n  UNIQUE KEY uidx_method_name (method_name)"},
		summary:  "SELECT ... FOR UPDATE of a row by a unique index, COMMIT; a connection for every holder and waiter, who queues in the server",
		promise:  "one holder while its connection to the one server lives and no failover ends it; waiters in order where the server grants so (MariaDB)",
		fails:    "a connection for every holder and waiter uses up a pool, and then no client gets any lock",
	}
}

// forUpdateNoIndex is mysql/for-update-no-index: mysql/for-update on a table
// whose keys have no index, in which a server can only find a row by reading,
// and locking, all rows.
//
// Document: a blog's comparison of three ways to build a lock, which warns
// against leaving out the unique index. It also warns that the server may
// ignore the index on a small table; for a row selected by its unique key no
// server did, see the tests.
//
// Round trips, bound, takeover and guarantee: as mysql/for-update.
// Failure: a holder of one key blocks all other keys, and new rows.
func forUpdateNoIndex() rowLock {
	return rowLock{
		rowTable: rowTable{recipe: "mysql/for-update-no-index", table: "lockbench_for_update_no_index"},
		summary:  "SELECT ... FOR UPDATE of a row without an index, COMMIT; reads and locks all rows",
		promise:  "one holder of all keys together while its connection to the one server lives and no failover ends it; waiters in order where the server grants so (MariaDB)",
		fails:    "a holder of one key holds all: unrelated keys block one another",
	}
}

// rowLock is a recipe that locks a row of a table; the two differ in the table.
type rowLock struct {
	anyTTL
	rowTable
	summary, promise, fails string
}

func (r rowLock) Info() impls.Info {
	return impls.Info{
		ID:       r.recipe,
		Backend:  "mysql",
		Summary:  r.summary,
		Promise:  r.promise,
		Document: "a blog's comparison of three ways to build a lock: the database's exclusive lock",
		Bound:    impls.BoundConnection,
		Fails:    r.fails,
		Properties: []impls.Property{impls.Exclusive, impls.DeadlockFree, impls.Symmetric, impls.Blocking, impls.NonBlocking,
			impls.Ordered, impls.ReportsLost, impls.CleansUp, impls.Once},
		Steps: []impls.Step{stepDraw, stepRollback},

		Topologies:      append(anywhere(), galera),
		GrantsPerServer: []string{galera},
		RoundTrips:      2,
		Requests:        []string{"com_select", "com_commit", "com_rollback", "com_kill"},
		Takeover:        atOnce,
	}
}

func (r rowLock) Prepare(ctx context.Context, cfg impls.Config, keys []string) error {
	return r.prepare(ctx, cfg, keys)
}

func (r rowLock) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	return r.open(ctx, cfg)
}
