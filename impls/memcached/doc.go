// Package memcached holds the recipes that build a lock on memcached.
//
// Each recipe is one file. driver.go has the catalogue of recipes, the driver
// and its table of errors; blind.go has the common part of the locks that do
// not store their owner.
//
// The package may import impls and the driver, and no other package of
// lockbench.
package memcached
