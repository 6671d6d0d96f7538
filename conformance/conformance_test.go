package conformance_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/lockbench/lockbench/cluster/clustertest"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/reference"
)

// served is a reference server and where it listens.
type served struct {
	*reference.Server
	path string
}

func newReference(t *testing.T) served {
	t.Helper()
	path := filepath.Join(clustertest.Run(t).Dir(), "reference.sock")
	s, err := reference.NewServer(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return served{s, path}
}

// shortest is the shortest TTL that the recipe can be served with, of those
// that leave a busy machine time to breathe.
func shortest(t *testing.T, r impls.Recipe, lim impls.Limits) time.Duration {
	t.Helper()
	var err error
	for _, ttl := range []time.Duration{1, 2, 3, 4, 5, 6} {
		if err = r.CheckTTL(ttl*time.Second, lim); err == nil {
			return ttl * time.Second
		}
	}
	t.Fatal(err)
	return 0
}
