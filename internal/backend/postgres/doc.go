// Package postgres is PostgreSQL: one server, a primary with a streaming
// replica, and a server behind PgBouncer, which pools its connections by
// transaction.
//
// Both programs refuse to run as root. As root lockbench starts them as the
// account that Debian's package brings, or as nobody.
//
// It may import backend and what stands below it.
package postgres
