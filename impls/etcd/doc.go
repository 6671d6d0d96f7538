// Package etcd holds the locks built on etcd, with the driver's plain key,
// lease and watch calls, and the one that comes with the driver.
//
// Every client has one lease, its session, which it keeps alive by itself; the
// keys that it writes hang on that lease and vanish with it.
//
// Each recipe has a file of its own, with its description above it; driver.go
// says how the driver is set up, client.go what recipes ask of it, session.go
// keeps the lease, queue.go and watch.go wait, renewals.go listens to a session
// of the client library, and outcome.go says which of the driver's errors mean
// what.
//
// It may import impls and the driver, nothing else of lockbench.
package etcd

import "github.com/lockbench/lockbench/impls"

// Recipes lists the recipes of this package.
func Recipes() []impls.Recipe { return []impls.Recipe{mutex{}, clientMutex{}, singleKey{}} }
