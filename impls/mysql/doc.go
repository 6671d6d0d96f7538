// Package mysql holds the recipes that build a lock on MySQL or MariaDB.
//
// Each recipe has a file of its own, which reads like its description;
// session.go holds the one connection that a client works on, and gets rid of
// connections that came into doubt; outcome.go says which errors mean what.
//
// It may import impls and the driver, nothing else of lockbench.
package mysql
