package recipetest

import (
	"strings"
	"testing"

	"github.com/lockbench/lockbench/impls"
)

// Requests checks, against the counters of a server that nobody else uses,
// that an uncontended acquire and release cost what the recipe says, in
// requests of the kinds that it names.
func Requests(t *testing.T, r impls.Recipe, cfg impls.Config, counters func() map[string]int64) {
	const pairs = 20
	key := NewKey()
	Prepare(t, r, cfg, key)
	c := Open(t, r, cfg)
	pair := func() {
		h, err := c.Acquire(t.Context(), key, NewAttempt())
		WantOutcome(t, "acquire", err, nil)
		WantOutcome(t, "release", h.Release(t.Context()), nil)
	}
	pair()
	before := counters()
	for range pairs {
		pair()
	}
	after := counters()
	var sent int64
	for name, n := range after {
		if named(r.Info().Requests, name) {
			sent += n - before[name]
		}
	}
	if want := int64(pairs * r.Info().RoundTrips); sent != want {
		t.Errorf("%d pairs took %d requests of %v, want %d; the counters went from %v to %v",
			pairs, sent, r.Info().Requests, want, before, after)
	}
}

func named(patterns []string, name string) bool {
	for _, p := range patterns {
		prefix, star := strings.CutSuffix(p, "*")
		if name == p || star && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
