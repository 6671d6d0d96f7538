// Package zookeeper holds the locks built on ZooKeeper with the driver's calls
// on nodes, and the driver's own lock.
//
// A client has one session; its nodes are ephemeral and vanish with the
// session. The driver renews the session and hides how; this package observes
// the packets on its connection (frame_observer.go) to know until when the
// session certainly lasts, and which nodes are watched (watch_set.go), since
// after a reconnect the driver may otherwise miss an event.
//
// Each recipe is one file, described above its type; driver.go sets up the
// driver, client.go has the calls of the recipes, session.go the session's end,
// queue.go the common part of all queues, and outcome.go the table of the
// driver's errors.
//
// The package may import impls and the driver, and no other package of
// lockbench.
package zookeeper

import "github.com/lockbench/lockbench/impls"

// Recipes lists the recipes of this package: a new recipe is a file and a line
// here.
func Recipes() []impls.Recipe {
	return []impls.Recipe{sequence{}, readWrite{}, clientLock{}, exclusiveNode{}, watchChildren{}}
}
