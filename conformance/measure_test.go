package conformance_test

import (
	"os"
	"testing"
	"time"

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
		cfg, lim, _ := serve(t, r.Info().Backend, r.Info().Topologies[0])
		cfg.TTL = shortest(t, r, lim)
		s = conformance.Subject{Recipe: r, Config: cfg}
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
