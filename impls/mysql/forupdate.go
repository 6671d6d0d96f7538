package mysql

import (
	"context"

	"github.com/lockbench/lockbench/impls"
)

// forUpdate is mysql/for-update: a row that a transaction reads for update, and
// has until it ends.
//
//	acquire  SELECT ... FOR UPDATE of the key's row by its unique index, in a new transaction
//	release  COMMIT
//
// Round trips: 1 to acquire, 1 to release; a waiter, who stands in the server's
// queue, asks again after 50 s, the server's own limit. A try is made with
// NOWAIT, and one that is refused sends a ROLLBACK more.
// Bound: the connection, one for every holder and one for every waiter; there is
// no lease, and a TTL means nothing. Takeover: as soon as the server sees the
// connection end, which a host that vanishes without a word may put off for as
// long as TCP does.
//
// It promises one holder as long as its connection lives; a holder that is
// merely silent keeps the lock. Waiters are served in the order in which they
// came by servers that grant so: MariaDB does; MySQL may prefer a transaction
// that blocks more others, and takes the longest waiting of equal ones. It fails
// when the server ends the connection, as mysql/get-lock does; where each of
// several servers locks rows by itself, as in a Galera cluster, which gives the
// lock to a client of each, and none of them is ever told, for none changes the
// row; and stops
// everybody when holders and waiters use up the connections: where the clients
// of a process share a pool (impls.Config.Shared) waiters of one key keep away
// those of all others, in no order. A holder also keeps new rows out of the gap
// before its own, so that all keys should be prepared before any is held.
//
// Source: a blog's comparison of three ways to build a lock, part on the
// database's exclusive lock.
func forUpdate() rowLock {
	return rowLock{
		rowTable: rowTable{recipe: "mysql/for-update", table: "lockbench_for_update", index: ",\n  UNIQUE KEY uidx_method_name (method_name)"},
		summary:  "SELECT ... FOR UPDATE of a row by a unique index, COMMIT; a connection for every holder and waiter, who queues in the server",
		promise:  "one holder as long as its connection to the one server lives, and no failover takes that away; waiters in order where the server grants so (MariaDB)",
		fails:    "a connection for every holder and every waiter uses up a pool, and then nobody gets any lock",
	}
}

// forUpdateNoIndex is mysql/for-update-no-index: mysql/for-update on a table
// whose keys have no index, in which a server can only find a row by reading,
// and locking, all of them.
//
// Round trips, bound, takeover and promises are those of mysql/for-update. It
// fails in that a holder of one key has all the others, too, and even keeps new
// rows out of the table.
//
// Source: a blog's comparison of three ways to build a lock, which warns of
// leaving the unique index out. It also warns that the server may leave the
// index alone on a small table; for a row that is looked up by its unique key
// no server did, see the tests.
func forUpdateNoIndex() rowLock {
	return rowLock{
		rowTable: rowTable{recipe: "mysql/for-update-no-index", table: "lockbench_for_update_no_index"},
		summary:  "SELECT ... FOR UPDATE of a row without an index, COMMIT; reads and locks all rows",
		promise:  "one holder of all keys together as long as its connection to the one server lives, and no failover takes that away; waiters in order where the server grants so (MariaDB)",
		fails:    "whoever holds one key holds all: unrelated keys block one another",
	}
}

// rowLock is a recipe that locks a row of a table; the two differ by the table.
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
