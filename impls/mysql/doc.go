// Package mysql holds the recipes that build a lock on MySQL or MariaDB.
//
// Each recipe has a file of its own, which reads like its description. What
// they share: session.go holds the one connection that a client works on, and
// gets rid of connections that came into doubt; statement.go sends statements,
// and has the server end those that nobody waits for any more; table.go creates
// tables; orders.go is the table in which a row is a lock; rowtable.go,
// rowlock.go and pool.go are the rows that transactions lock, and the
// connections they need; primary.go finds the server that takes writes among
// several, and galera.go one of a group that all do; hold.go is a lock that
// nothing renews; outcome.go says which errors mean what.
//
// It may import impls and the driver, nothing else of lockbench.
package mysql
