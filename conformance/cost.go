package conformance

// Cost checks that an uncontended acquire and release send as many requests as
// the recipe's RoundTrips say, of the kinds that its Requests name. Counters
// reads the requests that the servers have counted, by kind, of all servers
// together. It is apart from Checks because no other client may use the servers
// meanwhile; choose a TTL in whose third nothing of the check happens to be
// renewed, such as 10 s. On a machine so slow that something was, it counts
// again, fewer requests, between two renewals.
func Cost(t T, s Subject, counters func() map[string]int64) {
	t.Helper()
	s = s.withDefaults()
	info, began := s.Recipe.Info(), s.Config.Clock.Now()
	key, c := s.key(t), s.open(t)
	release(t, s.acquire(t, c, key)) // whatever only the first one pays
	for pairs := 20; ; pairs = (pairs + 1) / 2 {
		before := counters()
		for range pairs {
			release(t, s.acquire(t, c, key))
		}
		after := counters()
		var sent int64
		for name, n := range after {
			if info.Counts(name) {
				sent += n - before[name]
			}
		}
		want := int64(pairs * info.RoundTrips)
		if sent == want {
			return
		}
		took := s.Config.Clock.Now().Sub(began)
		if pairs > 1 && took > s.Config.TTL/3 {
			t.Logf("%d requests instead of %d, perhaps with a renewal, %v after the client was opened", sent, want, took)
			continue
		}
		t.Errorf("%d acquires and releases sent %d requests of %v, want %d; the counters went from %v to %v",
			pairs, sent, info.Requests, want, before, after)
		return
	}
}
