// Package etcd holds the locks built on etcd, with the driver's plain key,
// lease and watch calls.
//
// Every client has one lease, its session, which it keeps alive by itself; the
// keys that it writes hang on that lease and vanish with it.
//
// It may import impls.
package etcd

import "github.com/lockbench/lockbench/impls"

// Recipes lists the recipes of this package.
func Recipes() []impls.Recipe { return []impls.Recipe{mutex{}} }
