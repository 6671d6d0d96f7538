// Package mysql holds the recipes that build a lock on MySQL or MariaDB.
//
// Each recipe is one file. What they share: session.go has the one connection
// of a client and discards connections with an unknown outcome; statement.go
// sends statements, and makes the server end abandoned ones; table.go creates
// tables; orders.go is the table in which a row is a lock; rowtable.go,
// rowlock.go and pool.go are the rows that transactions lock, and their
// connections; primary.go finds the server that takes writes among several, and
// galera.go one of a group that all do; hold.go is a lock without renewal;
// outcome.go is the table of errors.
//
// The package may import impls and the driver, and no other package of
// lockbench.
package mysql
