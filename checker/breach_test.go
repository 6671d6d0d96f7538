package checker

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
)

// A lock that keeps its TTL exactly is never accused of an early expiry; one
// that halves it is caught, and its histories fit the untimed lease.
func TestTimedLease(t *testing.T) {
	t.Parallel()
	const ms = int64(time.Millisecond)
	scale := func(h *history.History) *history.History {
		for i := range h.Calls {
			h.Calls[i].Invoke *= ms
			h.Calls[i].Return *= ms
		}
		for i := range h.Streams {
			h.Streams[i].SealedAt *= ms
		}
		return h
	}
	rng := rand.New(rand.NewPCG(11, 13))
	caught, n := 0, rounds(8000)
	for i := range n {
		ttl := int64(2 + rng.IntN(10))
		h := scale(&simulate(rng, 2+rng.IntN(3), 30, ttl, false).h)
		if r := Check(h, Options{Leased: true, TTL: time.Duration(ttl * ms)}); r.BreachTotal() > 0 {
			t.Fatalf("history %d with TTL %d: %v\n%v", i, ttl, r.Breaches, show(h))
		}
		if r := Check(h, Options{Leased: true, TTL: time.Duration(4 * ttl * ms)}); r.Breaches[EarlyExpiry]+r.Breaches[LostLock] > 0 {
			caught++
			if r.Breaches[DoubleHold]+r.Breaches[ZombieSuccess] > 0 {
				t.Fatalf("history %d: a lawful lease is accused beyond its TTL: %v", i, r.Breaches)
			}
		}
	}
	if caught < n/8 {
		t.Errorf("a quarter of the promised TTL was noticed in %d of %d histories only", caught, n)
	}
}

// Named cases of the theory, and each class with its good twin.
func TestBreachCases(t *testing.T) {
	const (
		acq, rel, cln, ext = history.KindAcquire, history.KindRelease, history.KindCleanup, history.KindExtend
		held, ok, lost     = history.Held, history.Released, history.Lost
		unk, yes           = history.Unknown, history.Extended
	)
	type call struct {
		n    int // attempt, and client
		k    history.Kind
		o    history.Outcome
		c, r int64
	}
	lease := Options{Leased: true}
	timed := Options{Leased: true, TTL: 1000}
	for _, tc := range []struct {
		name  string
		opt   Options
		calls []call
		want  map[Class]int64
	}{
		{"a slow grant proves nothing of its end", lease, []call{{1, acq, held, 0, 10}, {0, acq, held, 1, 2}, {0, rel, ok, 20, 21}}, nil},
		{"the same as a mutex", Options{}, []call{{1, acq, held, 0, 10}, {0, acq, held, 1, 2}, {0, rel, ok, 20, 21}}, map[Class]int64{DoubleHold: 1}},
		{"a lease outlived by its holder", lease, []call{{0, acq, held, 0, 1}, {1, acq, held, 5, 6}, {1, rel, ok, 8, 9}, {0, rel, lost, 10, 11}}, nil},
		{"a lease granted twice", lease, []call{{0, acq, held, 0, 1}, {1, acq, held, 5, 6}, {0, rel, ok, 8, 9}, {1, rel, ok, 10, 11}}, map[Class]int64{DoubleHold: 1}},
		{"released after another's whole hold", lease, []call{{0, acq, held, 0, 1}, {1, acq, held, 5, 6}, {1, rel, ok, 8, 9}, {0, rel, ok, 10, 11}}, map[Class]int64{ZombieSuccess: 1}},
		{"within the TTL it is a double hold", timed, []call{{0, acq, held, 0, 1}, {1, acq, held, 5, 6}, {1, rel, ok, 8, 9}, {0, rel, ok, 10, 11}}, map[Class]int64{DoubleHold: 1}},
		{"a zero-length hold inside another", Options{}, []call{{0, acq, held, 0, 1}, {1, acq, held, 5, 6}, {1, rel, ok, 6, 7}, {0, rel, ok, 10, 11}}, map[Class]int64{DoubleHold: 1}},
		{"a zero-length hold at another's edge", Options{}, []call{{0, acq, held, 0, 1}, {0, rel, ok, 6, 8}, {1, acq, held, 5, 6}, {1, rel, ok, 6, 7}}, nil},
		{"within the TTL", timed, []call{{0, acq, held, 0, 1}, {1, acq, held, 5, 900}}, map[Class]int64{EarlyExpiry: 1}},
		{"after the TTL", timed, []call{{0, acq, held, 0, 1}, {1, acq, held, 5, 1000}}, nil},
		{"after a release was sent", timed, []call{{0, acq, held, 0, 1}, {0, rel, unk, 2, 3}, {1, acq, held, 5, 900}}, nil},
		{"renewed, then within the TTL", timed, []call{{0, acq, held, 0, 1}, {0, ext, yes, 600, 601}, {1, acq, held, 5, 1500}}, map[Class]int64{EarlyExpiry: 1}},
		{"a chain of leases", timed, []call{{0, acq, held, 0, 900}, {1, acq, held, 500, 1400}, {2, acq, held, 1900, 1950}}, map[Class]int64{EarlyExpiry: 1}},
		{"the same, later", timed, []call{{0, acq, held, 0, 900}, {1, acq, held, 500, 1400}, {2, acq, held, 1900, 1998}}, nil},
		{"a grant answered later than its TTL delays no other", timed, []call{{0, acq, held, 0, 1200}, {1, acq, held, 500, 1400}, {2, acq, held, 1500, 1600}}, nil},
		{"lost within the TTL", timed, []call{{0, acq, held, 0, 1}, {0, ext, lost, 600, 601}}, map[Class]int64{LostLock: 1}},
		{"lost after the TTL", timed, []call{{0, acq, held, 0, 1}, {0, rel, lost, 1600, 1601}}, nil},
		{"a mutex that forgot", Options{}, []call{{0, acq, held, 0, 1}, {0, rel, lost, 5, 6}}, map[Class]int64{LostLock: 1}},
		{"a mutex that signalled first", Options{}, []call{{0, acq, held, 0, 1}, {0, history.KindLost, lost, 4, 4}, {0, rel, lost, 5, 6}}, nil},
		{"a mutex freed by the unknown release", Options{}, []call{{0, acq, held, 0, 1}, {0, rel, unk, 2, 3}, {0, cln, lost, 5, 6}}, nil},
		{"an unknown acquire that a renewal confirms", lease, []call{{0, acq, unk, 0, 5}, {0, ext, yes, 8, 9}, {1, acq, held, 5, 6}, {1, rel, ok, 7, 8}}, nil},
		{"the same, inside another's hold", lease, []call{{0, acq, unk, 0, 5}, {0, ext, yes, 8, 9}, {1, acq, held, 5, 6}, {1, rel, ok, 12, 13}}, map[Class]int64{ZombieSuccess: 1}},
		{"the same twice, around another", lease, []call{{0, acq, unk, 0, 5}, {0, ext, yes, 6, 7}, {0, ext, yes, 20, 21}, {1, acq, held, 8, 9}, {1, rel, ok, 12, 13}}, map[Class]int64{ZombieSuccess: 1}},
		{"a clean-up proves no hold", lease, []call{{0, acq, unk, 0, 5}, {0, cln, ok, 12, 13}, {1, acq, held, 6, 7}, {1, rel, ok, 20, 21}}, nil},
		{"released twice", lease, []call{{0, acq, held, 0, 1}, {0, rel, ok, 2, 3}, {0, rel, ok, 4, 5}}, map[Class]int64{ZombieSuccess: 1}},
		{"renewed after its loss", lease, []call{{0, acq, held, 0, 1}, {0, ext, lost, 2, 3}, {0, ext, yes, 4, 5}}, map[Class]int64{ZombieSuccess: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBuilder()
			for _, c := range tc.calls {
				b.add(uint32(c.n), c.n, c.k, c.o, c.c, c.r)
			}
			r := Check(b.seal(5000), tc.opt)
			var sum int64
			for class, n := range tc.want {
				sum += n
				if r.Breaches[class] != n {
					t.Errorf("%d %s, want %d", r.Breaches[class], class, n)
				}
				if !hasWitness(r, class) {
					t.Errorf("no witness of %s", class)
				}
			}
			if r.BreachTotal() != sum || r.Malformed != 0 {
				t.Errorf("breaches %v, malformed %d", r.Breaches, r.Malformed)
			}
			if (r.Promise.Value == Broken) != (sum > 0) {
				t.Errorf("promise %v", r.Promise)
			}
		})
	}
}

func hasWitness(r Report, c Class) bool {
	for _, w := range r.Witnesses {
		if w.Class == c {
			return true
		}
	}
	return false
}
