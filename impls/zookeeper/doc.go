// Package zookeeper holds the locks built on ZooKeeper, with the driver's
// plain calls on nodes.
//
// A client is a session; the nodes that it creates are ephemeral and vanish
// with it. The driver keeps the session alive by itself and hides how; this
// package listens on its connection (see heard.go) to know until when the
// servers have certainly heard of the client.
//
// It may import impls.
package zookeeper

import "github.com/lockbench/lockbench/impls"

// Recipes lists the recipes of this package.
func Recipes() []impls.Recipe { return []impls.Recipe{sequence{}} }
