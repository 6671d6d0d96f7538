// Package etcd holds the locks built on etcd with the driver's key, lease and
// watch calls, and the driver's own lock.
//
// Every client has one lease, its session, which it renews; its keys belong to
// that lease and vanish with it.
//
// Each recipe is one file, described above its type; driver.go sets up the
// driver, client.go has the calls of the recipes, session.go renews the lease,
// queue.go and watch.go wait, renewal_observer.go observes the renewals of the
// client library, and outcome.go has the table of the driver's errors.
//
// The package may import impls and the driver, and no other package of
// lockbench.
package etcd

import "github.com/lockbench/lockbench/impls"

// Recipes lists the recipes of this package: a new recipe is a file and a line
// here.
func Recipes() []impls.Recipe { return []impls.Recipe{mutex{}, clientMutex{}, singleKey{}} }
