// Package memcached holds the recipes that build a lock on memcached.
//
// Each recipe has a file of its own, which reads like its description;
// driver.go says how the driver is set up and which of its errors mean what,
// blind.go what the locks have in common that do not store whose they are.
//
// It may import impls and the driver, nothing else of lockbench.
package memcached
