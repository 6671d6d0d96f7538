package all

import (
	"slices"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/etcd"
	"github.com/lockbench/lockbench/impls/memcached"
	"github.com/lockbench/lockbench/impls/mysql"
	"github.com/lockbench/lockbench/impls/postgres"
	"github.com/lockbench/lockbench/impls/redis"
	"github.com/lockbench/lockbench/impls/reference"
	"github.com/lockbench/lockbench/impls/zookeeper"
)

// Recipes lists every recipe, backend by backend, the controls last. The
// slice is the caller's own.
func Recipes() []impls.Recipe {
	return slices.Concat(
		redis.Recipes(),
		etcd.Recipes(),
		zookeeper.Recipes(),
		memcached.Recipes(),
		mysql.Recipes(),
		postgres.Recipes(),
		reference.Recipes(),
	)
}

// Find returns the recipe with this id ("redis/token").
func Find(id string) (impls.Recipe, bool) {
	for _, r := range Recipes() {
		if r.Info().ID == id {
			return r, true
		}
	}
	return nil, false
}
