// Package zookeeper holds the locks built on ZooKeeper, with the driver's
// plain calls on nodes, and the one that comes with the driver.
//
// A client is a session; the nodes that it creates are ephemeral and vanish
// with it. The driver keeps the session alive by itself and hides how; this
// package listens on its connection (see heard.go) to know until when the
// servers have certainly heard of the client, and what it watches (watched.go),
// since on a new connection the driver may else miss an event.
//
// Each recipe has a file of its own, with its description above it; driver.go
// says how the driver is set up, client.go what recipes ask of it, session.go
// keeps the session's end, queue.go is what all queues have in common, and
// outcome.go says which of the driver's errors mean what.
//
// It may import impls and the driver, nothing else of lockbench.
package zookeeper

import "github.com/lockbench/lockbench/impls"

// Recipes lists the recipes of this package.
func Recipes() []impls.Recipe {
	return []impls.Recipe{sequence{}, readWrite{}, clientLock{}, exclusiveNode{}, watchChildren{}}
}
