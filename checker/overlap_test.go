package checker

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/lockbench/lockbench/history"
)

// randomHolds makes a history of nothing but holds with few distinct stamps:
// equal ones and holds without length abound.
func randomHolds(rng *rand.Rand, uncertain bool) *history.History {
	b := newBuilder()
	clients := 1 + rng.IntN(6)
	for c := range clients {
		b.seqs[uint32(c)] = 0
	}
	width := int64(3 + rng.IntN(30))
	for n := range rng.IntN(14) {
		c, s := uint32(rng.IntN(clients)), rng.Int64N(width)
		e := s + rng.Int64N(1+width/3)
		key := uint32(rng.IntN(2))
		b.add(c, n, history.KindAcquire, history.Held, max(0, s-1), s).Key = key
		switch rng.IntN(4) {
		case 0:
			b.add(c, n, history.KindLost, history.Lost, e, e).Key = key
		default:
			b.add(c, n, history.KindRelease, history.Released, e, e+1).Key = key
		}
	}
	h := b.seal(2 * width)
	for i := range h.Streams {
		h.Streams[i].Worker = h.Streams[i].Client / 2
		if uncertain {
			h.Streams[i].ClockUncertainty = int64(h.Streams[i].Worker % 3)
		}
	}
	return h
}

// bruteOverlaps counts by looking at every pair and following the edges.
func bruteOverlaps(h *history.History) (sure, unsure, incidents, shared int64) {
	worker, u := map[uint32]uint32{}, map[uint32]int64{}
	for _, s := range h.Streams {
		worker[s.Client], u[s.Client] = s.Worker, s.ClockUncertainty
	}
	holds := holdsOf(h)
	group := make([]int, len(holds))
	for i := range group {
		group[i] = i
	}
	meet := func(a, b Hold, d int64) bool {
		return a.Key == b.Key && a.Start+d < b.End && b.Start+d < a.End
	}
	hasSure := map[[2]int]bool{}
	for i := range holds {
		for k := range i {
			d := u[holds[i].Client] + u[holds[k].Client]
			if worker[holds[i].Client] == worker[holds[k].Client] {
				d = 0
			}
			switch {
			case meet(holds[i], holds[k], d):
				sure++
				hasSure[[2]int{i, k}] = true
			case meet(holds[i], holds[k], -d):
				unsure++
			}
			if meet(holds[i], holds[k], 0) {
				from, to := group[i], group[k]
				for x := range group {
					if group[x] == from {
						group[x] = to
					}
				}
			}
		}
	}
	bad := map[int]bool{}
	for pair := range hasSure {
		bad[group[pair[0]]] = true
	}
	incidents = int64(len(bad))
	for key := range uint32(2) {
		for t := int64(0); t < 200; t++ {
			open, counts := 0, false
			for i, x := range holds {
				if x.Key == key && x.Start <= t && t < x.End {
					open++
					counts = bad[group[i]]
				}
			}
			if open > 1 && counts {
				shared++
			}
		}
	}
	return sure, unsure, incidents, shared
}

func TestOverlapsAgainstBruteForce(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	var safe, unsafe int
	n := rounds(30000)
	for i := range n {
		h := randomHolds(rng, i%2 == 1)
		sure, unsure, incidents, shared := bruteOverlaps(h)
		r := Check(h, Options{})
		if r.Overlaps != sure || r.UncertainOverlaps != unsure || r.Incidents != incidents || r.OverlapNS != shared {
			t.Fatalf("history %d: pairs %d, uncertain %d, incidents %d, time %d; by hand %d, %d, %d, %d\n%s%v", i,
				r.Overlaps, r.UncertainOverlaps, r.Incidents, r.OverlapNS, sure, unsure, incidents, shared, show(h), h.Streams)
		}
		if (r.Verdict.Value == Unsafe) != (sure > 0) || sure > 0 != hasWitness(r, Overlap) {
			t.Fatalf("history %d: verdict %v with %d overlaps", i, r.Verdict, sure)
		}
		if sure > 0 {
			unsafe++
		} else {
			safe++
		}
	}
	if safe < n/10 || unsafe < n/10 {
		t.Fatalf("%d without and %d with overlaps: the mix proves little", safe, unsafe)
	}
}

// contended adds two clients that pass the lock to one another properly.
func contended(b *builder, from int64) {
	b.add(0, 1000, history.KindAcquire, history.Held, from, from+1)
	b.add(1, 1001, history.KindAcquire, history.Held, from, from+8)
	b.add(0, 1000, history.KindRelease, history.Released, from+5, from+6)
	b.add(1, 1001, history.KindRelease, history.Released, from+9, from+10)
}

// Which calls end a hold, and which do not.
func TestHoldEnds(t *testing.T) {
	for _, tc := range []struct {
		name  string
		build func(b *builder)
		alter func(h *history.History)
		end   int64
	}{
		{"release sent", func(b *builder) { b.add(0, 0, history.KindRelease, history.Unknown, 50, 90) }, nil, 50},
		{"clean-up sent", func(b *builder) { b.add(0, 0, history.KindCleanup, history.Open, 50, 0) }, nil, 50},
		{"loss observed before the release", func(b *builder) {
			b.add(0, 0, history.KindLost, history.Lost, 40, 40)
			b.add(0, 0, history.KindRelease, history.Lost, 50, 60)
		}, nil, 40},
		{"a renewal answered lost", func(b *builder) {
			b.add(0, 0, history.KindExtend, history.Lost, 40, 45)
			b.add(0, 0, history.KindRelease, history.Lost, 50, 60)
		}, nil, 45},
		{"a renewal confirmed or unknown ends nothing", func(b *builder) {
			b.add(0, 0, history.KindExtend, history.Extended, 40, 45)
			b.add(0, 0, history.KindExtend, history.Unknown, 46, 47)
			b.add(0, 0, history.KindRelease, history.Released, 50, 60)
		}, nil, 50},
		{"sealed while held", func(b *builder) {}, nil, 500},
		{"killed: to the client's last record", func(b *builder) { b.add(0, 0, history.KindRead, history.Accepted, 70, 80) },
			func(h *history.History) { h.Streams[0].Sealed = false }, 80},
		{"a gap in a damaged history may hide the release", func(b *builder) {
			b.add(0, 0, history.KindRead, history.Accepted, 30, 35)
			b.seqs[0]++
			b.add(0, 0, history.KindRelease, history.Released, 50, 60)
		}, func(h *history.History) { h.Damage = []history.Damage{{What: "a record"}} }, 35},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBuilder()
			b.add(0, 0, history.KindAcquire, history.Held, 0, 10)
			tc.build(b)
			h := b.seal(500)
			if tc.alter != nil {
				tc.alter(h)
			}
			holds := holdsOf(h)
			if len(holds) != 1 || holds[0].Start != 10 || holds[0].End != tc.end {
				t.Errorf("holds %+v, want one from 10 to %d", holds, tc.end)
			}
		})
	}
}

// Safe needs evidence; each thing that is missing makes it unknown, and
// nothing of that hides what is certainly unsafe.
func TestVerdictNeedsEvidence(t *testing.T) {
	good := func() *builder { b := newBuilder(); contended(b, 0); return b }
	for _, tc := range []struct {
		name string
		b    *builder
		opt  Options
		do   func(h *history.History)
		want string
	}{
		{"a contended lock, kept", good(), Options{}, nil, Safe},
		{"nothing at all", newBuilder(), Options{}, nil, Unknown},
		{"never contended", func() *builder {
			b := newBuilder()
			b.add(0, 0, history.KindAcquire, history.Held, 0, 1)
			b.add(0, 0, history.KindRelease, history.Released, 2, 3)
			b.add(1, 1, history.KindAcquire, history.Held, 4, 5)
			b.add(1, 1, history.KindRelease, history.Released, 6, 7)
			return b
		}(), Options{}, nil, Unknown},
		{"a damaged history", good(), Options{}, func(h *history.History) { h.Damage = []history.Damage{{What: "x"}} }, Unknown},
		{"a missed fault", good(), Options{FaultMissed: []string{"the holder let go"}}, nil, Unknown},
		{"a run that was killed", good(), Options{Incomplete: "it was killed"}, nil, Unknown},
		{"writes without a final account", func() *builder {
			b := good()
			b.add(0, 1000, history.KindWrite, history.Accepted, 2, 3)
			return b
		}(), Options{}, nil, Unknown},
		{"a release without an acquire", func() *builder {
			b := good()
			b.add(0, 5, history.KindRelease, history.Released, 20, 21)
			return b
		}(), Options{}, nil, Unknown},
		{"an unknown outcome spoils nothing", func() *builder {
			b := good()
			b.add(0, 5, history.KindAcquire, history.Unknown, 20, 21)
			return b
		}(), Options{}, nil, Safe},
		{"an overlap, though the history is damaged", func() *builder {
			b := good()
			b.add(0, 5, history.KindAcquire, history.Held, 20, 21)
			b.add(1, 6, history.KindAcquire, history.Held, 22, 23)
			b.add(0, 5, history.KindRelease, history.Released, 25, 26)
			b.add(1, 6, history.KindRelease, history.Released, 27, 28)
			return b
		}(), Options{}, func(h *history.History) { h.Damage = []history.Damage{{What: "x"}} }, Unsafe},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := tc.b.seal(100)
			if tc.do != nil {
				tc.do(h)
			}
			r := Check(h, tc.opt)
			if r.Verdict.Value != tc.want {
				t.Errorf("verdict %v, want %s", r.Verdict, tc.want)
			}
			if r.Verdict.Why == "" || r.Promise.Why == "" || r.Liveness.Why == "" {
				t.Errorf("an answer without a reason: %+v", r)
			}
			if len(h.Damage) > 0 && (r.Promise.Value == Kept || r.Liveness.Value != Unknown) {
				t.Errorf("a damaged history proves nothing: promise %v, liveness %v", r.Promise, r.Liveness)
			}
		})
	}
}

// The order of the input is irrelevant, and what happens on one key changes
// nothing for another.
func TestInvariants(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(8, 9))
	opt := Options{Leased: true, TTL: 40, Fencing: true, Takeover: 5}
	for i := range rounds(2000) {
		h := randomHolds(rng, false)
		for k := range h.Calls {
			h.Calls[k].Fence = uint64(rng.IntN(6))
		}
		want := Check(h, opt)
		rng.Shuffle(len(h.Calls), func(a, b int) { h.Calls[a], h.Calls[b] = h.Calls[b], h.Calls[a] })
		rng.Shuffle(len(h.Streams), func(a, b int) { h.Streams[a], h.Streams[b] = h.Streams[b], h.Streams[a] })
		got := Check(h, opt)
		if a, b := fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", got); a != b {
			t.Fatalf("history %d: shuffled, it is judged otherwise\n%s\n%s", i, a, b)
		}
		if want.Verdict.Value == Safe && len(want.Witnesses) > 0 && want.Promise.Value != Broken && want.Liveness.Value != Stuck {
			t.Fatalf("history %d: safe, with witnesses %+v", i, want.Witnesses)
		}

		b := builder{h: *h, seqs: map[uint32]uint32{}}
		for c := range uint32(2) {
			b.seqs[100+c] = 0
		}
		b.h.Calls = append([]history.Call(nil), h.Calls...)
		for n := range 4 {
			c := uint32(100 + n%2)
			b.add(c, 5000+n, history.KindAcquire, history.Held, int64(10*n), int64(10*n+1)).Key = 77
			b.h.Calls[len(b.h.Calls)-1].Fence = uint64(n + 1)
			b.add(c, 5000+n, history.KindRelease, history.Released, int64(10*n+2), int64(10*n+3)).Key = 77
		}
		b.h.Streams = append(append([]history.Stream(nil), h.Streams...),
			history.Stream{Client: 100, Worker: 100, Sealed: true, SealedAt: 100}, history.Stream{Client: 101, Worker: 101, Sealed: true, SealedAt: 100})
		more := Check(&b.h, opt)
		if more.Overlaps != want.Overlaps || more.Incidents != want.Incidents || more.BreachTotal() != want.BreachTotal() || more.Grants != want.Grants+4 {
			t.Fatalf("history %d: a disjoint key changed the account\n%+v\n%+v", i, want, more)
		}
	}
}
