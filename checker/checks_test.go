package checker

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
)

// bruteTokens counts the grants whose token contradicts another grant's.
func bruteTokens(h *history.History) int64 {
	var grants []history.Call
	for _, c := range h.Calls {
		if c.Kind == history.KindAcquire && c.Outcome == history.Held && c.Fence != 0 {
			grants = append(grants, c)
		}
	}
	slices.SortStableFunc(grants, func(a, b history.Call) int { return int(a.Invoke - b.Invoke) })
	var n int64
	wrong := make([]bool, len(grants))
	for i, h := range grants {
		for _, g := range grants {
			if g.Return < h.Invoke && g.Fence >= h.Fence {
				wrong[i] = true
			}
		}
		if wrong[i] {
			n++
		}
	}
	// Of those left, all but the first of each token.
	for token := range uint64(10) {
		all, good := 0, 0
		for i, g := range grants {
			if g.Fence == token {
				all++
				if !wrong[i] {
					good++
				}
			}
		}
		if all > 1 {
			n += int64(good)
			if good > 0 {
				n--
			}
		}
	}
	return n
}

func TestTokensAgainstBruteForce(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(4, 4))
	var good, bad int
	n := rounds(20000)
	for i := range n {
		b := newBuilder()
		token := uint64(0)
		for n := range rng.IntN(7) {
			from := rng.Int64N(12)
			token += 1 + uint64(rng.IntN(2))
			if rng.IntN(4) == 0 {
				token = uint64(1 + rng.IntN(9))
			}
			b.add(uint32(n), n, history.KindAcquire, history.Held, from, from+rng.Int64N(5)).Fence = min(token, 9)
		}
		h := b.seal(50)
		r := Check(h, Options{Fencing: true})
		want := bruteTokens(h)
		if r.TokenRegressions != want || r.Breaches[TokenRegression] != want {
			t.Fatalf("history %d: %d regressions, by hand %d\n%s", i, r.TokenRegressions, want, show(h))
		}
		if want > 0 {
			bad++
			if r.Promise.Value != Broken || !hasWitness(r, TokenRegression) {
				t.Fatalf("history %d: promise %v", i, r.Promise)
			}
		} else {
			good++
		}
	}
	if good < n*3/20 || bad < n*3/20 {
		t.Fatalf("%d good and %d bad: the mix proves little", good, bad)
	}
}

func TestMissingToken(t *testing.T) {
	b := newBuilder()
	b.add(0, 0, history.KindAcquire, history.Held, 0, 1)
	if r := Check(b.seal(9), Options{Leased: true, Fencing: true}); r.Breaches[MissingToken] != 1 {
		t.Errorf("a grant without a token: %v", r.Breaches)
	}
	if r := Check(b.seal(9), Options{Leased: true}); r.BreachTotal() != 0 {
		t.Errorf("tokens asked of a lock that has none: %v", r.Breaches)
	}
}

func TestContendedAgainstBruteForce(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(6, 6))
	for i := range rounds(8000) {
		h := &simulate(rng, 1+rng.IntN(4), 25, 6, true).h
		ends := map[history.Attempt]int64{}
		for _, x := range holdsOf(h) {
			ends[x.Attempt] = x.End
		}
		var want int64
		asks := func(c history.Call) bool { return c.Kind == history.KindAcquire || c.Kind == history.KindTry }
		for _, g := range h.Calls {
			if !asks(g) || g.Outcome != history.Held {
				continue
			}
			if slices.ContainsFunc(h.Calls, func(c history.Call) bool {
				end, held := ends[c.Attempt]
				if !held {
					end = c.Return
					if c.Outcome == history.Open {
						end = 50 // sealed
					}
				}
				return asks(c) && c.Client != g.Client && c.Invoke <= g.Return && end >= g.Invoke
			}) {
				want++
			}
		}
		if r := Check(h, Options{Leased: true}); r.ContendedGrants != want {
			t.Fatalf("history %d: %d contended grants, by hand %d\n%s", i, r.ContendedGrants, want, show(h))
		}
	}
}

// guarded plays a counter on one register; each step names the attempt and
// what it does: reads, or writes one more than it read last.
func guarded(b *builder, flags history.Flags, writes []uint64, stale int) {
	for i, v := range writes {
		c := b.add(uint32(i%2), 1000+i%2, history.KindWrite, history.Accepted, int64(20+2*i), int64(21+2*i))
		c.Arg, c.Flags, c.Fence = v, flags, uint64(10+i)
		if i == stale {
			c.Flags |= history.FlagStale
			c.Fence = 1
		}
	}
}

func final(b *builder, flags history.Flags, accepted, value uint64) {
	c := b.add(history.Controller, 2000, history.KindFinal, history.Accepted, 90, 90)
	c.Flags, c.Arg, c.Value = flags, accepted, value
}

func TestDamage(t *testing.T) {
	for _, tc := range []struct {
		name           string
		build          func(b *builder)
		verdict        string
		lost, stale    int64
		known, contrad bool
	}{
		{"all count", func(b *builder) { guarded(b, 0, []uint64{1, 2, 3}, -1); final(b, 0, 3, 3) }, Safe, 0, 0, true, false},
		{"one lost", func(b *builder) { guarded(b, 0, []uint64{1, 2, 2}, -1); final(b, 0, 3, 2) }, Unsafe, 1, 0, true, false},
		{"a stale write", func(b *builder) { guarded(b, 0, []uint64{1, 2, 3}, 2); final(b, 0, 3, 3) }, Unsafe, 0, 1, true, false},
		{"an accepted write whose answer was lost", func(b *builder) {
			guarded(b, 0, []uint64{1, 2}, -1)
			b.add(0, 1000, history.KindWrite, history.Unknown, 30, 31)
			final(b, 0, 3, 3)
		}, Safe, 0, 0, true, false},
		{"no final account", func(b *builder) { guarded(b, 0, []uint64{1, 2, 3}, -1) }, Unknown, 0, 0, false, false},
		{"a final account of the other register only", func(b *builder) {
			guarded(b, history.FlagFenced, []uint64{1, 2, 3}, -1)
			final(b, 0, 0, 0)
		}, Unknown, 0, 0, false, false},
		{"acknowledged but not accepted", func(b *builder) { guarded(b, 0, []uint64{1, 2, 3}, -1); final(b, 0, 2, 2) }, Unknown, 0, 0, true, true},
		{"accepted but never sent", func(b *builder) { guarded(b, 0, []uint64{1, 2, 3}, -1); final(b, 0, 4, 4) }, Unknown, 0, 0, true, true},
		{"more than was written", func(b *builder) { guarded(b, 0, []uint64{1, 2, 3}, -1); final(b, 0, 3, 7) }, Unknown, 0, 0, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBuilder()
			contended(b, 0)
			tc.build(b)
			r := Check(b.seal(100), Options{})
			var sum Register
			sum.Known = true
			for _, reg := range r.Registers {
				sum.LostUpdates += reg.LostUpdates
				sum.StaleWrites += reg.StaleWrites
				sum.Known = sum.Known && reg.Known
				sum.Contradiction += reg.Contradiction
			}
			if r.Verdict.Value != tc.verdict || sum.LostUpdates != tc.lost || sum.StaleWrites != tc.stale || sum.Known != tc.known || (sum.Contradiction != "") != tc.contrad {
				t.Errorf("verdict %v, registers %+v", r.Verdict, r.Registers)
			}
			if hasWitness(r, LostUpdate) != (tc.lost > 0) || hasWitness(r, StaleWrite) != (tc.stale > 0) {
				t.Errorf("witnesses %+v", r.Witnesses)
			}
		})
	}
}

// bruteStuck looks at every tick.
func bruteStuck(h *history.History, end int64) int64 {
	holds := holdsOf(h)
	var longest, now int64
	for t := int64(0); t < end; t++ {
		held := slices.ContainsFunc(holds, func(x Hold) bool { return x.Start <= t && t < x.End })
		wanted := slices.ContainsFunc(h.Calls, func(c history.Call) bool {
			to := c.Return
			if c.Outcome == history.Open {
				to = end
			}
			return c.Kind == history.KindAcquire && c.Invoke <= t && t < to
		})
		now++
		if held || !wanted {
			now = 0
		}
		longest = max(longest, now)
	}
	return longest
}

func TestStuckAgainstBruteForce(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 1))
	for i := range rounds(8000) {
		h := &simulate(rng, 1+rng.IntN(4), 25, 5, true).h
		want := bruteStuck(h, 25)
		r := Check(h, Options{Leased: true, Takeover: 3, End: 25})
		if r.Stuck.Length() != want {
			t.Fatalf("history %d: longest %d, by hand %d\n%s", i, r.Stuck.Length(), want, show(h))
		}
		if (r.Liveness.Value == Stuck) != (want > 3) || hasWitness(r, StuckKey) != (want > 3) {
			t.Fatalf("history %d: liveness %v with longest %d", i, r.Liveness, want)
		}
	}
}

func TestLiveness(t *testing.T) {
	waits := func(from, to int64) func(b *builder) {
		return func(b *builder) { b.add(2, 7, history.KindAcquire, history.Failed, from, to) }
	}
	repeated := func(gap int64, more int) func(b *builder) {
		return func(b *builder) {
			for i, at := 0, int64(20); i <= more; i, at = i+1, at+2+gap {
				b.add(2, 7+i, history.KindAcquire, history.Failed, at, at+2)
			}
		}
	}
	for _, tc := range []struct {
		name  string
		build func(b *builder)
		opt   Options
		do    func(h *history.History)
		want  string
	}{
		{"free, wanted, not granted", waits(20, 40), Options{Takeover: 10}, nil, Stuck},
		{"within the bound", waits(20, 30), Options{Takeover: 10}, nil, Live},
		{"not wanted", func(*builder) {}, Options{Takeover: 10}, nil, Live},
		{"no bound declared", waits(20, 40), Options{}, nil, Unknown},
		{"the waiter was paused", waits(20, 40), Options{Takeover: 10, Paused: []Interval{{Client: 2, From: 22, To: 35}}}, nil, Live},
		{"another was paused", waits(20, 40), Options{Takeover: 10, Paused: []Interval{{Client: 1, From: 22, To: 35}}}, nil, Stuck},
		{"after the window", waits(20, 40), Options{Takeover: 10, End: 25}, nil, Live},
		{"asks again and again", repeated(3, 3), Options{Takeover: 10}, nil, Unknown},
		{"asks again and again in a pause", repeated(3, 3), Options{Takeover: 10, Paused: []Interval{{Client: 2, From: 24, To: 35}}}, nil, Live},
		{"asks again and again, and once in a pause", repeated(3, 3), Options{Takeover: 10, Paused: []Interval{{Client: 2, From: 35, To: 36}}}, nil, Unknown},
		{"asks again within the bound", repeated(3, 1), Options{Takeover: 10}, nil, Live},
		{"asks again after long thought", repeated(11, 3), Options{Takeover: 10}, nil, Live},
		{"a dead client's acquire", func(b *builder) { b.add(2, 7, history.KindAcquire, history.Open, 20, 0) }, Options{Takeover: 10},
			func(h *history.History) {
				for i := range h.Streams {
					h.Streams[i].Sealed = h.Streams[i].Client != 2
				}
			}, Live},
		{"a living client's open acquire", func(b *builder) { b.add(2, 7, history.KindAcquire, history.Open, 20, 0) }, Options{Takeover: 10}, nil, Stuck},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBuilder()
			contended(b, 0)
			tc.build(b)
			h := b.seal(100)
			if tc.do != nil {
				tc.do(h)
			}
			if r := Check(h, tc.opt); r.Liveness.Value != tc.want {
				t.Errorf("liveness %v, want %s", r.Liveness, tc.want)
			}
		})
	}
}

// A holder that outlived its lease explains its overlaps, unless a suspect
// does; it does not explain a lock that grants twice within a lease.
func TestOutlivedLease(t *testing.T) {
	b := newBuilder()
	const acq, rel = history.KindAcquire, history.KindRelease
	at := func(x int64) int64 { return x * int64(time.Millisecond) }
	b.add(0, 0, acq, history.Held, at(10), at(20))
	b.add(1, 1, acq, history.Held, at(50), at(1100)) // after the lease of 0
	b.add(2, 2, acq, history.Held, at(60), at(1200)) // within that of 1
	for c := range uint32(3) {
		b.add(c, int(c), rel, history.Released, at(2000)+int64(c), at(2010)+int64(c))
	}
	opt := Options{Leased: true, TTL: time.Second}
	for _, tc := range []struct {
		suspects []Suspect
		want     map[string]int64
	}{
		{nil, map[string]int64{Outlived: 2, NoKnownCause: 1}},
		{[]Suspect{{Cause: "a pause", Attempt: id(0), From: at(30)}}, map[string]int64{"a pause": 2, NoKnownCause: 1}},
		{[]Suspect{{Cause: "a pause", Attempt: id(1), From: at(30)}}, map[string]int64{"a pause": 2, Outlived: 1}},
	} {
		opt.Suspects = tc.suspects
		r := Check(b.seal(at(3000)), opt)
		got := map[string]int64{}
		for _, c := range r.Causes {
			got[c.Cause] = c.Count
		}
		if r.Overlaps != 3 || !maps.Equal(got, tc.want) {
			t.Errorf("suspects %v: %d overlaps, causes %v, want %v", tc.suspects, r.Overlaps, got, tc.want)
		}
	}
}

// A grant that arrives when its lease is nearly over ends as its client recorded,
// unless it was renewed without a record of the new end.
func TestLeaseEndsAsRecorded(t *testing.T) {
	failover := Suspect{Cause: "a failover", AllClients: true, To: int64(time.Hour)}
	for name, tc := range map[string]struct {
		end    int64
		extend bool
		want   string
	}{
		"over before the next grant": {1200, false, Outlived},
		"over after the next grant":  {1400, false, failover.Cause},
		"not recorded":               {0, false, failover.Cause},
		"renewed":                    {1200, true, failover.Cause},
	} {
		b := newBuilder()
		b.add(0, 0, history.KindAcquire, history.Held, 10, 1000).LeaseEnd = tc.end
		if tc.extend {
			b.add(0, 0, history.KindExtend, history.Extended, 1010, 1020)
		}
		b.add(1, 1, history.KindAcquire, history.Held, 1100, 1300)
		b.add(0, 0, history.KindRelease, history.Lost, 1500, 1510)
		b.add(1, 1, history.KindRelease, history.Released, 1600, 1610)
		r := Check(b.seal(3000), Options{Leased: true, TTL: 1100, Suspects: []Suspect{failover}})
		if len(r.Causes) != 1 || r.Causes[0].Cause != tc.want {
			t.Errorf("%s: causes %v, want %s", name, r.Causes, tc.want)
		}
	}
}

// A paused holder explains its overlaps and what it wrote, and nothing else.
func TestCauses(t *testing.T) {
	b := newBuilder()
	const acq, rel = history.KindAcquire, history.KindRelease
	b.add(0, 0, acq, history.Held, 0, 10)
	b.add(1, 1, acq, history.Held, 40, 50)
	b.add(1, 1, rel, history.Released, 60, 61)
	b.add(1, 2, acq, history.Held, 62, 63)
	b.add(0, 0, history.KindWrite, history.Accepted, 65, 66).Arg = 5
	b.add(0, 0, rel, history.Lost, 70, 71)
	b.add(2, 3, acq, history.Held, 80, 81)
	b.add(1, 2, rel, history.Released, 90, 91) // overlaps with 3, for no known cause
	b.add(2, 3, rel, history.Released, 95, 96)
	final(b, 0, 9, 7)
	suspects := []Suspect{{Cause: "a pause", Attempt: id(0), From: 12}}
	counts := func(r Report) map[string]int64 {
		m := map[string]int64{}
		for _, c := range r.Causes {
			m[c.Cause] = c.Count
		}
		return m
	}
	r := Check(b.seal(100), Options{Leased: true, Suspects: suspects})
	// The key has an overlap that the pause does not explain; so neither does
	// it explain the lost updates.
	if got := counts(r); r.Overlaps != 3 || got["a pause"] != 2 || got[NoKnownCause] != 1+2 {
		t.Errorf("overlaps %d, causes %v", r.Overlaps, got)
	}
	b.h.Calls = slices.DeleteFunc(b.h.Calls, func(c history.Call) bool { return c.Attempt == id(3) })
	if got := counts(Check(b.seal(100), Options{Leased: true, Suspects: suspects})); got["a pause"] != 2+2 || got[NoKnownCause] != 0 {
		t.Errorf("causes %v", got)
	}
	suspects[0].From = 99
	if got := counts(Check(b.seal(100), Options{Leased: true, Suspects: suspects})); got["a pause"] != 0 {
		t.Errorf("a pause after the fact explains: %v", got)
	}
}
