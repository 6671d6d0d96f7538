// Package postgres holds the recipes that build a lock on PostgreSQL.
//
// Each recipe has a file of its own. What they share: session.go is the one
// connection that a client works on, and ends sessions whose state is in doubt;
// primary.go finds the server that accepts writes; cancel.go ends a statement
// whose context is over; outcome.go is the table from errors to outcomes.
//
// It may import impls and the driver, nothing else of lockbench.
package postgres
