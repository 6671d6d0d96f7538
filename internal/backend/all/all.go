// Package all is the catalogue of backends: the only place that names every one.
package all

import (
	"fmt"

	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/backend/etcd"
	"github.com/lockbench/lockbench/internal/backend/memcached"
	"github.com/lockbench/lockbench/internal/backend/mysql"
	"github.com/lockbench/lockbench/internal/backend/postgres"
	"github.com/lockbench/lockbench/internal/backend/redis"
	"github.com/lockbench/lockbench/internal/backend/zookeeper"
)

// Backends lists every backend, in the order of reports. The slice is the
// caller's own.
func Backends() []backend.Backend {
	return []backend.Backend{
		redis.Backend{},
		etcd.Backend{},
		zookeeper.Backend{},
		memcached.Backend{},
		mysql.Backend{},
		postgres.Backend{},
	}
}

// Names lists the names of all backends, in the same order.
func Names() (names []string) {
	for _, b := range Backends() {
		names = append(names, b.Describe().Name)
	}
	return names
}

// Find returns the backend with this name. The error is ErrSpec if there is
// none.
func Find(name string) (backend.Backend, error) {
	for _, b := range Backends() {
		if b.Describe().Name == name {
			return b, nil
		}
	}
	return nil, fmt.Errorf("%w: there is no backend %q: choose from %v", backend.ErrSpec, name, Names())
}

// Describe returns the description of a backend; the zero value if there is no
// such backend.
func Describe(name string) backend.Description {
	if b, err := Find(name); err == nil {
		return b.Describe()
	}
	return backend.Description{}
}
