package conformance

import (
	"slices"
	"strings"
)

// Cost checks that an uncontended acquire and release send as many requests as
// the recipe's RoundTrips say, of the kinds that its Requests name. Counters
// reads the requests that the servers have counted, by kind, of all servers
// together. It is apart from Checks because nobody else may use the servers
// meanwhile; choose a TTL in whose third nothing of the check happens to be
// renewed, such as 10 s.
func Cost(t T, s Subject, counters func() map[string]int64) {
	t.Helper()
	const pairs = 20
	s = s.withDefaults()
	info := s.Recipe.Info()
	key, c := s.key(t), s.open(t)
	release(t, s.acquire(t, c, key)) // whatever only the first one pays
	before := counters()
	for range pairs {
		release(t, s.acquire(t, c, key))
	}
	after := counters()
	var sent int64
	for name, n := range after {
		if named(info.Requests, name) {
			sent += n - before[name]
		}
	}
	if want := int64(pairs * info.RoundTrips); sent != want {
		t.Errorf("%d acquires and releases sent %d requests of %v, want %d; the counters went from %v to %v",
			pairs, sent, info.Requests, want, before, after)
	}
}

// named reports whether one of the patterns, which may end in *, is name's.
func named(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		prefix, star := strings.CutSuffix(p, "*")
		return name == p || star && strings.HasPrefix(name, prefix)
	})
}
