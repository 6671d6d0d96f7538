package conformance_test

import (
	"os"
	"testing"
	"time"

	"github.com/lockbench/lockbench/cluster/clustertest"
	"github.com/lockbench/lockbench/conformance"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/all"
	"github.com/lockbench/lockbench/impls/reference"
)

func TestOne(t *testing.T) {
	id := os.Getenv("ONE")
	if id == "" {
		id = "reference/mutex"
	}
	r, _ := all.Find(id)
	var s conformance.Subject
	if r.Info().Backend == "reference" {
		_ = reference.Recipes
		s = conformance.Subject{Recipe: r, Config: impls.Config{Addresses: []string{newReference(t).path}, TTL: time.Second}}
	} else {
		tops := r.Info().Topologies
		settings := map[string]string{}
		if r.Info().Backend == "zookeeper" {
			settings = clustertest.FastZooKeeper()
		}
		c := clustertest.Start(t, r.Info().Backend, tops[len(tops)-1], settings)
		s = conformance.Subject{Recipe: r, Config: impls.Config{Addresses: c.Addresses(), Account: c.Account(), TTL: shortest(t, r, c.Limits())}, Servers: c}
	}
	start := time.Now()
	fs, err := conformance.Measure(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fs {
		mark := "  "
		if !f.AsPromised() {
			mark = "!!"
		}
		t.Log(mark, f)
	}
	t.Log(time.Since(start))
}
